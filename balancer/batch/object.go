package batch

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
)

// File is a file as its owner sees it, and whose it is.
type File struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Bytes     int64  `json:"bytes"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt *int64 `json:"expires_at"`
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"`
	Status    string `json:"status"`
}

// storedFile is a file as it is kept.
type storedFile struct {
	File
	Owner string `json:"owner"`
}

// Batch is a batch as its owner sees it.
type Batch struct {
	ID               string            `json:"id"`
	Object           string            `json:"object"`
	Endpoint         string            `json:"endpoint"`
	Errors           *Errors           `json:"errors"`
	InputFileID      string            `json:"input_file_id"`
	CompletionWindow string            `json:"completion_window"`
	Status           string            `json:"status"`
	OutputFileID     *string           `json:"output_file_id"`
	ErrorFileID      *string           `json:"error_file_id"`
	CreatedAt        int64             `json:"created_at"`
	InProgressAt     *int64            `json:"in_progress_at"`
	ExpiresAt        *int64            `json:"expires_at"`
	FinalizingAt     *int64            `json:"finalizing_at"`
	CompletedAt      *int64            `json:"completed_at"`
	FailedAt         *int64            `json:"failed_at"`
	ExpiredAt        *int64            `json:"expired_at"`
	CancellingAt     *int64            `json:"cancelling_at"`
	CancelledAt      *int64            `json:"cancelled_at"`
	Counts           Counts            `json:"request_counts"`
	Metadata         map[string]string `json:"metadata"`
}

// storedBatch is a batch as it is kept: whose it is, with which key its lines are sent,
// and the files that its answers go to.
type storedBatch struct {
	Batch
	Owner    string `json:"owner"`
	Key      string `json:"key,omitempty"`
	Output   string `json:"output"`
	Failures string `json:"failures"`
	KeepFor  int64  `json:"keep_for"` // seconds; of its answers
}

// Counts are how far a batch is.
type Counts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

// Errors are why a batch has failed before its first line was sent.
type Errors struct {
	Object string  `json:"object"`
	Data   []Fault `json:"data"`
}

// Fault is one thing that is wrong with a batch's input.
type Fault struct {
	Code    string  `json:"code"`
	Line    *int    `json:"line"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
}

// The states of a batch.
const (
	validating = "validating"
	failed     = "failed"
	inProgress = "in_progress"
	finalizing = "finalizing"
	completed  = "completed"
	expired    = "expired"
	cancelling = "cancelling"
	cancelled  = "cancelled"
)

// over reports whether nothing happens to the batch any more.
func (b *Batch) over() bool {
	switch b.Status {
	case failed, completed, expired, cancelled:
		return true
	}
	return false
}

// request is one line of an input.
type request struct {
	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

// result is one line of an output.
type result struct {
	ID       string        `json:"id"`
	CustomID string        `json:"custom_id"`
	Response *response     `json:"response"`
	Error    *resultsFault `json:"error"`
}

type response struct {
	StatusCode int             `json:"status_code"`
	RequestID  string          `json:"request_id"`
	Body       json.RawMessage `json:"body"`
}

type resultsFault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// newID makes an id that nobody can guess.
func newID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // ends the program rather than fail
	return prefix + hex.EncodeToString(b[:])
}

func known(t int64) *int64 { return &t }
