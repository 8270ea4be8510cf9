package batch

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/beat"
)

// Limits bound what batches take.
type Limits struct {
	Lines   int           // under way at once
	Most    int           // of one batch
	File    int64         // bytes of one file
	Storage int64         // bytes of all
	Keep    time.Duration // files, and batches that have ended
	Window  time.Duration // the longest completion window
}

// Answer is what became of one line.
type Answer struct {
	Status     int
	RequestID  string
	Body       []byte
	RetryAfter time.Duration // where Status asks for another try; 0: it does not say
}

// Send sends one line, as the key of that name. Its error says that there is no answer.
type Send func(ctx context.Context, key, path string, body []byte) (Answer, error)

// Service is the files and batches of a folder.
type Service struct {
	store  *store
	limits Limits
	send   Send
	log    *slog.Logger
	now    func() time.Time

	ended sync.Map      // of ids: batches that were cancelled here, which their jobs need not read from disk
	wake  chan struct{} // holds one: there is something to look at
	group sync.WaitGroup
	slots chan struct{}
}

// Open makes a folder ready. Run sends its lines.
func Open(dir string, limits Limits, send Send, log *slog.Logger) (*Service, error) {
	st, err := openStore(dir, time.Now)
	if err != nil {
		return nil, err
	}
	return &Service{store: st, limits: limits, send: send, log: log, now: time.Now, wake: make(chan struct{}, 1), slots: make(chan struct{}, limits.Lines)}, nil
}

// look has the runner look for what is new.
func (s *Service) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// lookEvery is how often a runner looks for batches, and a program that is not the
// runner for the place of one.
const lookEvery = time.Second

// sweepEvery is how often what is old is removed.
const sweepEvery = 10 * time.Minute

// Run sends lines while this program is the folder's runner, until ctx ends: then no
// new line is sent, and those that are under way are waited for.
func (s *Service) Run(ctx context.Context) {
	var place *os.File
	defer func() {
		s.group.Wait()
		if place != nil {
			place.Close()
		}
	}()
	running := map[string]bool{}
	done := make(chan string, 64)
	tick := time.NewTimer(beat.Next(lookEvery, 0))
	defer tick.Stop()
	swept := time.Time{}
	for {
		if place == nil {
			place = s.takePlace()
		}
		if place != nil {
			if s.now().Sub(swept) > sweepEvery {
				swept = s.now()
				if err := s.store.sweep(s.limits.Keep); err != nil {
					s.log.Warn("old files of batches could not be removed", "error", err.Error())
				}
			}
			s.begin(ctx, running, done)
		}
		select {
		case <-ctx.Done():
			return
		case id := <-done:
			delete(running, id)
		case <-s.wake:
		case <-tick.C:
			tick.Reset(beat.Next(lookEvery, 0))
		}
	}
}

// Close forgets the folder, once Run has returned.
func (s *Service) Close() {
	s.store.close()
}

// takePlace makes this program the runner, unless another one is: the kernel gives its
// place back when it ends, however it ends.
func (s *Service) takePlace() *os.File {
	f, err := os.OpenFile(filepath.Join(s.store.dir, "runner"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return f
		}
		f.Close()
	}
	if err != unix.EWOULDBLOCK {
		s.log.Warn("batches cannot run", "error", err.Error())
	}
	return nil
}

// mostActive is how many batches take lines at once; the others wait for their turn.
const mostActive = 16

// begin goes on with what is not over. Owners that have nothing under way come first.
func (s *Service) begin(ctx context.Context, running map[string]bool, done chan string) {
	all, err := s.store.all()
	if err != nil {
		s.log.Error("batches cannot be read", "error", err.Error())
		return
	}
	busy := map[string]bool{}
	for _, b := range all {
		if running[b.ID] {
			busy[b.Owner] = true
		}
	}
	for _, others := range []bool{true, false} {
		for _, b := range all {
			if b.over() || running[b.ID] || len(running) >= mostActive || others && busy[b.Owner] {
				continue
			}
			running[b.ID], busy[b.Owner] = true, true
			s.group.Go(func() {
				s.run(ctx, b.ID)
				done <- b.ID
			})
		}
	}
}
