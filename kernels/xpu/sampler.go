package xpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu/cl"
)

// The figures of sample.cl.
const (
	chunkTokens = 256
	jobWords    = 8
	headWords   = 4 // of an answer, before its candidates
	mostWanted  = 64
)

// job is one look at one row of logits, all of it or what a mask allows.
type job struct {
	row    int
	mask   int // in asked; -1: none
	wanted int // candidates
	draws  bool
	at     int // in found
}

// ask is what one sampled row needs of the device.
type ask struct {
	whole, masked int // jobs; masked is -1 where all is allowed
	edits, probes int // in found: the logits of edited and probed tokens
}

// sampler finds candidates of rows of logits on the device, so that whole rows stay
// there unless a draw needs one.
type sampler struct {
	e      *executable
	logits kernels.Tensor
	vocab  int
	chunks int

	survey, extract, gather *launch
	asked, sums, found      *cl.Buffer

	jobs   []job
	asks   []ask
	words  []int32 // asked, as it is uploaded
	pairs  []int32 // rows and tokens whose logits are wanted
	raw    []byte
	answer []int32 // found, as it came back
	row    []float32
	rowOf  int // what row holds; -1: nothing
	choice []kernels.Choice

	wholeRows int // that were brought to the host
}

// newSampler makes the three launches, which run behind those of the step.
func (e *executable) newSampler(logits kernels.Tensor) {
	vocab := e.p.Width(logits)
	s := &sampler{e: e, logits: logits, vocab: vocab, chunks: (vocab + chunkTokens - 1) / chunkTokens, rowOf: -1}
	x := e.value(logits)
	began := len(e.launches)
	nowhere := func(counts) []uintptr { return dims(0) }
	e.launch("survey", dims(64, 1), nowhere, x, vocab, none, none)
	e.launch("extract", dims(64, 1), nowhere, x, vocab, s.chunks, none, none, none)
	e.launch("gather", nil, nowhere, x, vocab, none, 0, none, 0)
	if e.err != nil {
		return
	}
	s.survey, s.extract, s.gather = e.launches[began], e.launches[began+1], e.launches[began+2]
	e.sampler = s
	rows := e.limits.Rows // each with a mask and all that it can ask for, but for edits
	e.err = s.fit(rows*(2*jobWords+(vocab+31)/32), 2*rows*s.chunks*4, 2*rows*(headWords+2*mostWanted+s.chunks+chunkTokens))
}

// begin plans what a step's samplings need, uploads it and enqueues the kernels. The
// answers are read by end.
func (s *sampler) begin(all []kernels.Sampling) error {
	s.jobs, s.asks, s.pairs, s.rowOf = s.jobs[:0], s.asks[:0], s.pairs[:0], -1
	masks := 0
	for i := range all {
		if all[i].Times > 0 {
			return fmt.Errorf("times among the tokens: %w on GPUs", errors.ErrUnsupported)
		}
		masks = s.plan(i, &all[i], masks)
	}
	at := 0
	for i := range s.jobs {
		s.jobs[i].at = at
		at += headWords + 2*s.jobs[i].wanted
		if s.jobs[i].draws {
			at += s.chunks + chunkTokens
		}
	}
	gathered := at
	at += len(s.pairs) / 2
	s.write(all, masks)
	s.answer = grown(s.answer, at)
	if err := s.fit(len(s.words), len(s.jobs)*s.chunks*4, at); err != nil {
		return err
	}
	for i, w := range s.words {
		binary.LittleEndian.PutUint32(s.raw[4*i:], uint32(w))
	}
	if err := s.asked.WriteLater(0, s.raw[:4*len(s.words)]); err != nil {
		return err
	}
	if err := s.survey.kernel.Run(dims(64*s.chunks, len(s.jobs)), s.survey.local); err != nil {
		return err
	}
	if err := s.extract.kernel.Run(dims(64, len(s.jobs)), s.extract.local); err != nil {
		return err
	}
	for i := range s.asks {
		s.asks[i].edits += gathered
		s.asks[i].probes += gathered
	}
	return s.runGather(gathered, masks)
}

// runGather enqueues the look-up of single logits, if there are any.
func (s *sampler) runGather(gathered, masks int) error {
	if len(s.pairs) == 0 {
		return nil
	}
	if err := s.gather.kernel.SetInt(3, int32(jobWords*len(s.jobs)+masks)); err != nil {
		return err
	}
	if err := s.gather.kernel.SetInt(5, int32(gathered)); err != nil {
		return err
	}
	return s.gather.kernel.Run(dims(len(s.pairs)/2), nil)
}

// plan adds the jobs and single logits of one row; it returns the words that masks
// take so far.
func (s *sampler) plan(row int, sm *kernels.Sampling, masks int) int {
	candidates := min(s.candidates(sm), s.vocab)
	draws := everything(sm, s.vocab)
	a := ask{whole: len(s.jobs), masked: -1}
	whole := job{row: row, mask: -1, wanted: max(min(int(sm.Top), mostWanted, s.vocab), candidates), draws: draws}
	if sm.Allowed != nil {
		whole.draws, whole.wanted = false, min(mostWanted, s.vocab) // for the token's rank
		a.masked = len(s.jobs) + 1
		s.jobs = append(s.jobs, whole, job{row: row, mask: masks, wanted: candidates, draws: draws})
		masks += (s.vocab + 31) / 32
	} else {
		s.jobs = append(s.jobs, whole)
	}
	a.edits = len(s.pairs) / 2
	for _, e := range sm.Edits {
		s.pairs = append(s.pairs, int32(row), e.Token)
	}
	a.probes = len(s.pairs) / 2
	for _, t := range sm.Probe {
		s.pairs = append(s.pairs, int32(row), t)
	}
	s.asks = append(s.asks, a)
	return masks
}

// candidates is how many of the greatest logits decide a sampling, mostWanted at most.
func (s *sampler) candidates(sm *kernels.Sampling) int {
	switch {
	case len(sm.Edits) > 0:
		return mostWanted
	case sm.Temperature == 0:
		return 1
	case sm.TopK > 0:
		return min(int(sm.TopK), mostWanted)
	}
	return mostWanted
}

// everything reports whether a sampling draws from all tokens.
func everything(sm *kernels.Sampling, vocab int) bool {
	return sm.Temperature > 0 && sm.TopP >= 1 && sm.MinP <= 0 && (sm.TopK <= 0 || int(sm.TopK) >= vocab)
}

// write lays out asked: jobs, masks, pairs.
func (s *sampler) write(all []kernels.Sampling, masks int) {
	s.words = s.words[:0]
	for _, j := range s.jobs {
		sm, mask, chance := &all[j.row], int32(-1), float32(-1)
		if j.mask >= 0 {
			mask = int32(jobWords*len(s.jobs) + j.mask)
		}
		if j.draws {
			chance = float32(sm.Uniform())
		}
		cooling := float32(1)
		if sm.Temperature > 0 {
			cooling = 1 / sm.Temperature
		}
		s.words = append(s.words, int32(j.row), mask, int32(j.wanted), int32(math.Float32bits(cooling)),
			int32(j.at), int32(math.Float32bits(chance)), 0, 0)
	}
	for _, j := range s.jobs {
		if j.mask >= 0 {
			for _, w := range all[j.row].Allowed[:(s.vocab+31)/32] {
				s.words = append(s.words, int32(w))
			}
		}
	}
	s.words = append(s.words, s.pairs...)
}

// end waits for the answers and chooses.
func (s *sampler) end(all []kernels.Sampling) ([]kernels.Choice, error) {
	if err := s.found.Read(0, bytesOfWords(s.answer)); err != nil {
		return nil, err
	}
	return s.answers(all)
}

// whole brings a row of logits to the host.
func (s *sampler) whole(i int) ([]float32, error) {
	if s.rowOf == i {
		return s.row, nil
	}
	s.row = grown(s.row, s.vocab)
	if err := s.e.values[s.logits].Read(4*int64(i)*int64(s.vocab), bytesOfFloats(s.row)); err != nil {
		return nil, err
	}
	s.rowOf = i
	s.wholeRows++
	return s.row, nil
}

// fit makes room for a step and tells the kernels where it is. It grows by doubling.
// Where there is no more memory, the step alone fails.
func (s *sampler) fit(asked, sums, found int) error {
	if cap(s.raw) < 4*asked {
		s.raw = make([]byte, 8*asked)
	}
	s.raw = s.raw[:cap(s.raw)]
	for _, r := range []struct {
		buf  **cl.Buffer
		need int
		uses []use
	}{
		{&s.asked, asked, []use{{s.survey, 2}, {s.extract, 3}, {s.gather, 2}}},
		{&s.sums, sums, []use{{s.survey, 3}, {s.extract, 4}}},
		{&s.found, found, []use{{s.extract, 5}, {s.gather, 4}}},
	} {
		if *r.buf != nil && (*r.buf).Size >= 4*int64(r.need) {
			continue
		}
		buf, err := s.e.b.buffer(8 * int64(r.need))
		if err != nil {
			return &kernels.StepError{Seq: -1, Err: fmt.Errorf("what the step asks of its logits: %w", err)}
		}
		if *r.buf != nil {
			s.e.b.release(*r.buf)
		}
		*r.buf = buf
		for _, u := range r.uses {
			if err := u.launch.kernel.SetBuffer(u.argument, buf); err != nil {
				return err
			}
		}
	}
	return nil
}

// use is one argument of one launch.
type use struct {
	launch   *launch
	argument int
}

// grown is a slice of length n in x's memory, or in more of it.
func grown[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n, 2*n)
	}
	return x[:n]
}
