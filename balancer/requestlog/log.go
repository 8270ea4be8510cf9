package requestlog

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/lines"
	"roundhouse/configs"
)

// Log is the file in force, which a reload may change. The zero value writes nothing.
type Log struct {
	now  atomic.Pointer[current]
	lost atomic.Uint64 // of those before

	mu    sync.Mutex
	fault error
}

// current is one configuration of the log, with what writes it.
type current struct {
	cfg  configs.LogRequests
	out  *lines.Writer
	file *file
}

// noting tells how writing goes.
type noting struct {
	log  *Log
	file *file
}

// Write implements io.Writer.
func (n noting) Write(p []byte) (int, error) {
	done, err := n.file.Write(p)
	if err != nil {
		err = fmt.Errorf("door.log_requests: %w", err)
	}
	n.log.mu.Lock()
	n.log.fault = err
	n.log.mu.Unlock()
	return done, err
}

// Configure puts another configuration in force; nil: nothing is written. What the one
// before has taken is still written.
func (l *Log) Configure(cfg *configs.LogRequests) {
	old := l.now.Load()
	switch {
	case old == nil && cfg == nil, old != nil && cfg != nil && same(&old.cfg, cfg):
		return
	case cfg == nil:
		l.now.Store(nil)
	default:
		f := &file{path: cfg.Path, size: int64(cfg.Size), files: cfg.Files}
		l.now.Store(&current{cfg: *cfg, file: f, out: lines.New(noting{l, f}, loss)})
	}
	if old != nil {
		l.end(old)
	}
}

func same(a, b *configs.LogRequests) bool {
	return a.Path == b.Path && a.Bodies == b.Bodies && a.Body == b.Body && a.Size == b.Size && a.Files == b.Files && slices.Equal(a.Keys, b.Keys)
}

// loss is the line that tells of lost ones.
func loss(dropped uint64, why string) []byte {
	text, err := json.Marshal(map[string]any{"time": time.Now().UTC(), "dropped": dropped, "error": why})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return append(text, '\n')
}

func (l *Log) end(c *current) {
	c.out.Close()
	l.lost.Add(c.out.Dropped())
	c.file.close()
	l.mu.Lock()
	l.fault = nil
	l.mu.Unlock()
}

// Close writes what is left.
func (l *Log) Close() { l.Configure(nil) }

// Dropped is how many lines were lost.
func (l *Log) Dropped() uint64 {
	n := l.lost.Load()
	if c := l.now.Load(); c != nil {
		n += c.out.Dropped()
	}
	return n
}

// Fault is why the last lines could not be written; nil: they were.
func (l *Log) Fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// Wants reports whether a key's requests are written, and how much of their bodies; the
// name of no key is empty.
func (l *Log) Wants(key string) (body int, wanted bool) {
	c := l.now.Load()
	if c == nil || !slices.Contains(c.cfg.Keys, "*") && !slices.Contains(c.cfg.Keys, key) {
		return 0, false
	}
	if c.cfg.Bodies {
		body = int(c.cfg.Body)
	}
	return body, true
}

// Line is what is written of a request. No header is among it, so no secret one.
type Line struct {
	Time      time.Time `json:"time"`
	ID        string    `json:"id"`
	Door      string    `json:"door"`
	Key       string    `json:"key,omitempty"` // its name
	Client    string    `json:"client,omitempty"`
	Method    string    `json:"method"`
	Path      string    `json:"path"`
	Model     string    `json:"model,omitempty"`
	Pool      string    `json:"pool,omitempty"`
	Worker    string    `json:"worker,omitempty"`
	Status    int       `json:"status"`
	Outcome   string    `json:"outcome"`
	Error     string    `json:"error,omitempty"` // its code
	Seconds   float64   `json:"seconds"`
	Queued    float64   `json:"queue_seconds"`
	First     *float64  `json:"ttft_seconds,omitempty"`
	Resumes   int       `json:"resumes,omitempty"`
	TokensIn  *int64    `json:"tokens_in"` // as the engine has said
	Cached    *int64    `json:"tokens_cached"`
	TokensOut *int64    `json:"tokens_out"`
	Request   *Text     `json:"request,omitempty"`
	Answer    *Text     `json:"answer,omitempty"`
}

// Text is a body, or its beginning.
type Text struct {
	Text  string `json:"text"`
	Bytes int64  `json:"bytes"`         // of the whole
	Cut   bool   `json:"cut,omitempty"` // the text is its beginning
}

// Write writes a line; it does not wait.
func (l *Log) Write(line *Line) {
	c := l.now.Load()
	if c == nil {
		return
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	_, _ = c.out.Write(append(text, '\n')) // what is lost is counted
}
