package profile

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"

	"roundhouse/worker"
)

// Settings are --profiler-config.
type Settings struct {
	Dir   string // where profiles are written
	Delay int    // steps before the first that is recorded
	Most  int    // steps that are recorded; 0: all until Stop
}

// The errors of Start and Stop that are the asker's.
var (
	ErrRuns    = errors.New("a profile is being taken already; POST /stop_profile ends it")
	ErrNone    = errors.New("no profile is being taken; POST /start_profile begins one")
	ErrStopped = errors.New("the engine has stopped")
)

// Profiler takes one profile at a time.
type Profiler struct {
	settings Settings
	engine   *worker.Engine

	mu      sync.Mutex
	session *session
}

// session is a profile under way.
type session struct {
	prefix string
	steps  *steps
	cpu    bytes.Buffer
	full   chan struct{} // closed when as many steps are recorded as were asked for
	done   chan struct{} // closed when it was ended
	began  time.Time
}

// New makes a profiler of an engine.
func New(s Settings, e *worker.Engine) *Profiler { return &Profiler{settings: s, engine: e} }

// blocking is how long a goroutine must wait in the mean to be sampled, in nanoseconds:
// shorter waits would cost more to note than they take. Of mutexes every tenth wait is.
const blocking = 10_000

// prefixes are those that vLLM takes.
var prefixes = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func errPrefix(prefix string) error {
	return fmt.Errorf("profile_prefix: want 1 to 128 letters, digits, '.', '_' and '-', the first a letter or digit, got %.40q", prefix)
}

// Start begins a profile: after some steps, of so many (0: all until Stop). The files'
// names begin with the prefix; "" has one made.
func (p *Profiler) Start(ctx context.Context, prefix string, delay, most int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		return ErrRuns
	}
	if prefix == "" {
		prefix = "roundhouse-" + strconv.Itoa(os.Getpid()) + "-" + time.Now().UTC().Format("20060102-150405.000")
	}
	if !prefixes.MatchString(prefix) {
		return errPrefix(prefix)
	}
	s := &session{prefix: prefix, full: make(chan struct{}), done: make(chan struct{}), began: time.Now()}
	s.steps = newSteps(delay, most, s.full)
	if err := pprof.StartCPUProfile(&s.cpu); err != nil {
		return fmt.Errorf("the processor's profile: %w", err)
	}
	runtime.SetBlockProfileRate(blocking)
	runtime.SetMutexProfileFraction(10)
	if !p.engine.WatchSteps(ctx, s.steps.see) {
		p.quiet()
		return ErrStopped
	}
	p.session = s
	if most > 0 {
		go p.endFull(s)
	}
	return nil
}

// endFull ends a profile that has as many steps as were asked for, and writes it: whoever
// bounds the steps need not come back.
func (p *Profiler) endFull(s *session) {
	select {
	case <-s.full:
		_, _ = p.write(context.Background(), s) // nobody waits for an answer
	case <-s.done:
	}
}

// quiet ends everything that costs.
func (p *Profiler) quiet() {
	pprof.StopCPUProfile()
	runtime.SetBlockProfileRate(0)
	runtime.SetMutexProfileFraction(0)
}

// file is one file of a profile.
type file struct {
	name string
	data []byte
}

// end ends a profile and returns its files; nil if it was ended before.
func (p *Profiler) end(ctx context.Context, s *session) []file {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != s {
		return nil
	}
	p.session = nil
	close(s.done)
	p.engine.WatchSteps(context.WithoutCancel(ctx), nil)
	p.quiet()
	files := []file{{"summary.txt", s.steps.summary(time.Since(s.began))}, {"trace.json.gz", s.steps.trace()}, {"cpu.pprof", s.cpu.Bytes()}}
	for _, name := range []string{"heap", "block", "mutex", "goroutine"} {
		var b bytes.Buffer
		if err := pprof.Lookup(name).WriteTo(&b, 0); err != nil {
			panic("BUG: a buffer takes no profile: " + err.Error())
		}
		files = append(files, file{name + ".pprof", b.Bytes()})
	}
	return files
}

// current is the profile under way.
func (p *Profiler) current() (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil {
		return nil, ErrNone
	}
	return p.session, nil
}

// Stop ends the profile and writes its files into the profiler's folder. It returns
// their paths.
func (p *Profiler) Stop(ctx context.Context) ([]string, error) {
	s, err := p.current()
	if err != nil {
		return nil, err
	}
	return p.write(ctx, s)
}

func (p *Profiler) write(ctx context.Context, s *session) (paths []string, err error) {
	files := p.end(ctx, s)
	if err := os.MkdirAll(p.settings.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("torch_profiler_dir: %w", err)
	}
	for _, f := range files {
		path := filepath.Join(p.settings.Dir, s.prefix+"."+f.name)
		if err := os.WriteFile(path, f.data, 0o644); err != nil {
			return paths, fmt.Errorf("torch_profiler_dir: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// StopTo ends the profile and writes its files to w, as one archive; none goes into the
// profiler's folder.
func (p *Profiler) StopTo(ctx context.Context, w io.Writer) error {
	s, err := p.current()
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	for _, f := range p.end(ctx, s) {
		to, err := z.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: time.Now()})
		if err != nil {
			return err
		}
		if _, err := to.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}
