package profile

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"roundhouse/worker"
)

// mostSpans bounds the operations that are kept one by one: those of the first steps.
// Sums are of all.
const mostSpans = 200_000

// mostSteps bounds the steps that are kept, likewise.
const mostSteps = 200_000

// steps are the steps of a profile. see is called by the engine's goroutine; everything
// else once the engine calls it no more.
type steps struct {
	delay, most int
	full        chan struct{}

	list    []worker.Watched // their spans copied
	spans   int
	seen    int
	sums    map[string]*sum // by operation
	threads int
	busy    time.Duration // of all threads, in operations
	compute time.Duration // by the clock

	schedule, commit time.Duration
	tokens           int
	prompts, decodes int
	preempted        int
}

// sum is the time of one operation.
type sum struct {
	times int
	took  time.Duration // of all threads
}

func newSteps(delay, most int, full chan struct{}) *steps {
	return &steps{delay: delay, most: most, full: full, sums: map[string]*sum{}}
}

// see takes one step in.
func (s *steps) see(w *worker.Watched) {
	if s.delay > 0 {
		s.delay--
		return
	}
	if s.most > 0 && s.seen == s.most {
		return
	}
	s.seen++
	for _, span := range w.Spans {
		x := s.sums[span.Op]
		if x == nil {
			x = &sum{}
			s.sums[span.Op] = x
		}
		x.times++
		x.took += span.Ended.Sub(span.Began)
		s.busy += span.Ended.Sub(span.Began)
		s.threads = max(s.threads, span.Thread+1)
	}
	s.compute += w.Ended.Sub(w.Began)
	s.schedule += w.Began.Sub(w.Planned)
	s.commit += w.Committed.Sub(w.Ended)
	s.tokens, s.prompts, s.decodes, s.preempted = s.tokens+w.Tokens, s.prompts+w.Prompts, s.decodes+w.Decodes, s.preempted+w.Preempted
	if len(s.list) < mostSteps {
		kept := *w
		kept.Spans = nil
		if s.spans += len(w.Spans); s.spans <= mostSpans {
			kept.Spans = slices.Clone(w.Spans)
		}
		s.list = append(s.list, kept)
	}
	if s.most > 0 && s.seen == s.most {
		close(s.full)
	}
}

// summary is the profile for people: where a step's time goes.
func (s *steps) summary(took time.Duration) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d steps in %.1f s: %d tokens, %d parts of prompts, %d tokens chosen next, %d preemptions\n", s.seen, took.Seconds(), s.tokens, s.prompts, s.decodes, s.preempted)
	if s.seen == 0 {
		b.WriteString("the engine computed nothing meanwhile: send it requests, and take the profile again\n")
		return b.Bytes()
	}
	share := func(d, of time.Duration) string { return fmt.Sprintf("%.1f %%", 100*d.Seconds()/of.Seconds()) }
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nthe engine\tms a step\tof the time\n")
	idle := max(0, took-s.compute-s.schedule-s.commit)
	for _, row := range []struct {
		name string
		took time.Duration
	}{{"schedule", s.schedule}, {"compute", s.compute}, {"hand out", s.commit}, {"nothing to do, or others had the processor", idle}} {
		fmt.Fprintf(t, "%s\t%.3f\t%s\n", row.name, 1000*row.took.Seconds()/float64(s.seen), share(row.took, took))
	}
	if len(s.sums) == 0 {
		t.Flush()
		b.WriteString("\nthis backend does not tell its operations apart\n")
		return b.Bytes()
	}
	all := time.Duration(s.threads) * s.compute
	fmt.Fprintf(t, "\noperation, on %d threads\tms a step\tof computing\ttimes a step\n", s.threads)
	names := slices.SortedFunc(maps.Keys(s.sums), func(a, b string) int { return cmp.Compare(s.sums[b].took, s.sums[a].took) })
	for _, name := range names {
		x := s.sums[name]
		fmt.Fprintf(t, "%s\t%.3f\t%s\t%.1f\n", name, 1000*x.took.Seconds()/float64(s.seen), share(x.took, all), float64(x.times)/float64(s.seen))
	}
	if wait := all - s.busy; wait > 0 {
		fmt.Fprintf(t, "threads wait for each other\t%.3f\t%s\n", 1000*wait.Seconds()/float64(s.seen), share(wait, all))
	}
	t.Flush()
	return b.Bytes()
}
