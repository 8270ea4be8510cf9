package batch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// mostFaults is how many faults of an input are told.
const mostFaults = 100

// mostLine is how long one line of an input may be.
const mostLine = 32 << 20

// job is one batch while it runs.
type job struct {
	s      *Service
	b      storedBatch
	output *results
	failed *results

	mu     sync.Mutex
	counts Counts
	saved  time.Time
}

// run carries one batch on from where it stands, until it ends or ctx does.
func (s *Service) run(ctx context.Context, id string) {
	var b storedBatch
	if err := read(s.store.batch(id), &b); err != nil {
		s.log.Error("a batch cannot be read", "batch", id, "error", err.Error())
		return
	}
	if b.Status == validating && !s.validate(&b) {
		return
	}
	j := &job{s: s, b: b}
	err := j.open()
	if err == nil {
		err = j.lines(ctx)
		err = errors.Join(err, j.close())
	}
	if errors.Is(err, fs.ErrNotExist) {
		s.noInput(id)
		return
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error("a batch stopped; it is tried again", "batch", id, "error", err.Error())
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
		}
		return
	}
	if ctx.Err() != nil && !j.ended() {
		j.save(true)
		return
	}
	if err := j.finish(); err != nil {
		s.log.Error("a batch's answers cannot be kept", "batch", id, "error", err.Error())
	}
}

// noInput ends a batch whose input was deleted while lines were left.
func (s *Service) noInput(id string) {
	if _, err := s.store.update(id, func(b *storedBatch) error {
		b.Status, b.FailedAt = failed, known(s.now().Unix())
		b.Errors = &Errors{"list", []Fault{{Code: "no_input", Message: "the input file was deleted before all of its lines were sent"}}}
		return nil
	}); err != nil {
		s.log.Error("a batch cannot be ended", "batch", id, "error", err.Error())
	}
}

// each calls f with every line of an input that is not blank, numbered from 1.
func (s *Service) each(id string, f func(n int, line []byte) error) error {
	in, err := os.Open(s.store.content(id))
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), mostLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := f(n, lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// validate looks at the whole input before a line is sent.
func (s *Service) validate(b *storedBatch) bool {
	var faults []Fault
	names, total := map[string]bool{}, 0
	fault := func(n int, code, format string, args ...any) {
		if len(faults) < mostFaults {
			f := Fault{Code: code, Message: fmt.Sprintf(format, args...)}
			if n > 0 {
				f.Line = &n
			}
			faults = append(faults, f)
		}
	}
	err := s.each(b.InputFileID, func(n int, line []byte) error {
		total++
		var r request
		switch err := json.Unmarshal(line, &r); {
		case err != nil:
			fault(n, "invalid_json_line", "this line is not a request: %v", err)
		case r.CustomID == "":
			fault(n, "missing_required_parameter", "custom_id is missing")
		case names[r.CustomID]:
			fault(n, "duplicate_custom_id", "custom_id %.80q stands on another line as well", r.CustomID)
		case r.Method != "POST":
			fault(n, "invalid_method", "method is %.20q; it is POST", r.Method)
		case r.URL != b.Endpoint:
			fault(n, "mismatched_endpoint", "url is %.80q; the batch's endpoint is %s", r.URL, b.Endpoint)
		case len(r.Body) == 0 || r.Body[0] != '{':
			fault(n, "missing_required_parameter", "body is missing, or no object")
		}
		names[r.CustomID] = true
		if total > s.limits.Most {
			fault(0, "too_many_lines", "the file has more than %d lines (door.batches.lines)", s.limits.Most)
			return io.EOF
		}
		return nil
	})
	switch {
	case err == io.EOF:
	case errors.Is(err, bufio.ErrTooLong):
		fault(0, "line_too_long", "a line is longer than %d bytes", mostLine)
	case err != nil:
		fault(0, "no_input", "the input file cannot be read any more")
		s.log.Warn("a batch's input cannot be read", "batch", b.ID, "error", err.Error())
	case total == 0:
		fault(0, "empty_file", "the file has no line")
	}
	now := known(s.now().Unix())
	changed, err := s.store.update(b.ID, func(b *storedBatch) error {
		if b.Status != validating { // it was cancelled meanwhile
			return nil
		}
		if faults != nil {
			b.Status, b.FailedAt, b.Errors = failed, now, &Errors{"list", faults}
			return nil
		}
		b.Status, b.InProgressAt, b.Counts.Total = inProgress, now, total
		return nil
	})
	*b = changed
	return err == nil && b.Status != failed
}

// results is a file of answers that grows.
type results struct {
	file *os.File
	done map[string]bool // the custom ids that it has
}

// openResults reads what was written before, up to the last whole line: what the end of
// a program has left of another is cut off, and sent again.
func openResults(path string) (*results, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	r := &results{file: f, done: map[string]bool{}}
	in := bufio.NewReaderSize(f, 64<<10)
	whole := int64(0)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		var known struct {
			CustomID string `json:"custom_id"`
		}
		if json.Unmarshal(line, &known) != nil {
			break
		}
		whole += int64(len(line))
		r.done[known.CustomID] = true
	}
	_, err = f.Seek(whole, io.SeekStart)
	if err = errors.Join(f.Truncate(whole), err); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// add appends one answer in one write.
func (r *results) add(v result) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = r.file.Write(append(line, '\n'))
	return err
}

func (j *job) open() (err error) {
	if j.output, err = openResults(j.s.store.content(j.b.Output)); err != nil {
		return err
	}
	if j.failed, err = openResults(j.s.store.content(j.b.Failures)); err != nil {
		return errors.Join(err, j.output.file.Close())
	}
	j.counts = Counts{j.b.Counts.Total, len(j.output.done), len(j.failed.done)}
	return nil
}

func (j *job) close() error {
	return errors.Join(j.output.file.Sync(), j.failed.file.Sync(), j.output.file.Close(), j.failed.file.Close())
}

// errStop ends the reading of lines: nothing more is to be sent.
var errStop = errors.New("the batch takes no more lines")

// lines sends every line that has no answer yet, as many at once as there are slots.
func (j *job) lines(ctx context.Context) error {
	var group sync.WaitGroup
	var failure error
	due := time.Unix(*j.b.ExpiresAt, 0)
	// What is under way when ctx ends is still answered, as at the end of a drain.
	within, end := context.WithDeadline(context.WithoutCancel(ctx), due)
	defer end()
	err := j.s.each(j.b.InputFileID, func(_ int, line []byte) error {
		var r request
		if err := json.Unmarshal(line, &r); err != nil || j.has(r.CustomID) {
			return nil // a file that was changed behind our back has been validated once
		}
		select {
		case j.s.slots <- struct{}{}:
			if j.over() { // meanwhile, mostly
				<-j.s.slots
				return errStop
			}
		case <-within.Done():
			return errStop
		case <-ctx.Done():
			return errStop
		}
		r.Body = append(json.RawMessage(nil), r.Body...)
		group.Go(func() {
			defer func() { <-j.s.slots }()
			if err := j.line(ctx, within, r); err != nil {
				j.mu.Lock()
				failure = errors.Join(failure, err)
				j.mu.Unlock()
			}
		})
		j.mu.Lock()
		defer j.mu.Unlock()
		return failure
	})
	group.Wait()
	if err == errStop {
		err = nil
	}
	return errors.Join(err, failure)
}

// has reports whether a line is answered.
func (j *job) has(id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.output.done[id] || j.failed.done[id]
}

// over reports whether somebody has cancelled the batch. It looks once a second.
func (j *job) over() bool {
	if _, ended := j.s.ended.Load(j.b.ID); ended {
		return true
	}
	j.mu.Lock()
	fresh := time.Since(j.saved) < time.Second
	j.mu.Unlock()
	if !fresh {
		j.save(false)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Status == cancelling
}

// save writes how far the batch is, and reads what became of it meanwhile.
func (j *job) save(last bool) {
	j.mu.Lock()
	counts := j.counts
	j.saved = time.Now()
	j.mu.Unlock()
	b, err := j.s.store.update(j.b.ID, func(b *storedBatch) error {
		b.Counts = counts
		return nil
	})
	if err != nil {
		j.s.log.Warn("a batch's progress cannot be written", "batch", j.b.ID, "last", last, "error", err.Error())
		return
	}
	j.mu.Lock()
	j.b.Status = b.Status
	j.mu.Unlock()
}

// The pauses between two tries of a line that nobody could take.
const (
	firstPause = time.Second
	mostPause  = time.Minute
)

// line sends one line until it is answered, and writes the answer down. It tries no
// more once going has ended.
func (j *job) line(going, ctx context.Context, r request) error {
	body, err := plainBody(r.Body)
	if err != nil {
		return j.write(j.failed, result{CustomID: r.CustomID, Error: &resultsFault{"invalid_body", "the body is no object"}})
	}
	pause := firstPause
	for going.Err() == nil && ctx.Err() == nil {
		a, err := j.s.send(ctx, j.b.Key, j.b.Endpoint, body)
		switch {
		case err == nil && !again(a.Status):
			to := j.failed
			if a.Status == 200 {
				to = j.output
			}
			if !json.Valid(a.Body) {
				a.Body, _ = json.Marshal(string(a.Body)) // a string has JSON
			}
			if err := j.write(to, result{CustomID: r.CustomID, Response: &response{a.Status, a.RequestID, a.Body}}); err != nil {
				return err
			}
			j.over() // which tells how far it is
			return nil
		case j.over():
			return nil
		}
		select {
		case <-ctx.Done():
		case <-going.Done():
		case <-time.After(max(pause, min(a.RetryAfter, mostPause))):
		}
		pause = min(2*pause, mostPause)
	}
	return nil
}

// again reports whether an answer says to come again.
func again(status int) bool {
	switch status {
	case 408, 429, 499, 502, 503, 504:
		return true
	}
	return false
}

// plainBody is a line's body without what asks for a stream.
func plainBody(body json.RawMessage) ([]byte, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	_, streams := m["stream"]
	_, options := m["stream_options"]
	if !streams && !options {
		return body, nil
	}
	delete(m, "stream")
	delete(m, "stream_options")
	return json.Marshal(m)
}

// write keeps one answer and counts it.
func (j *job) write(to *results, r result) error {
	r.ID = newID("batch_req_")
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := to.add(r); err != nil {
		return err
	}
	to.done[r.CustomID] = true
	if to == j.output {
		j.counts.Completed++
	} else {
		j.counts.Failed++
	}
	return nil
}

// ended reports whether nothing is left to be sent.
func (j *job) ended() bool {
	return j.counts.Completed+j.counts.Failed >= j.counts.Total || j.over() || j.s.now().Unix() >= *j.b.ExpiresAt
}
