package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"roundhouse/kernels"
	"roundhouse/worker/kv"
)

// Text is one sequence of which a model that embeds or scores makes a row.
type Text struct {
	Tokens []int32
	Types  []int32 // segments; nil: zeros

	Positions []int32 // nil: 0, 1, 2 and so on
}

// pooled is one text on its way. Texts go through the model whole, first come,
// first served, as many in a step as fit.
type pooled struct {
	text  Text
	table kv.Table
	began time.Time
	row   []float32
	err   error
	done  chan struct{} // closed when row or err is there
	gone  bool          // nobody waits for it any more
}

// Pool returns the model's row for each text. It is for models that embed or
// score; one that generates has no such output.
func (e *Engine) Pool(ctx context.Context, texts []Text) ([][]float32, error) {
	if err := e.Err(); err != nil {
		return nil, err
	}
	jobs := make([]*pooled, len(texts))
	for i, t := range texts {
		if n := len(t.Tokens); n == 0 || n > min(e.cfg.MaxModelLen, e.cfg.Limits.Tokens) {
			return nil, fmt.Errorf("a text of %d tokens does not fit a context of %d", n, min(e.cfg.MaxModelLen, e.cfg.Limits.Tokens))
		}
		jobs[i] = &pooled{text: t, began: time.Now(), done: make(chan struct{})}
	}
	if !e.post(func() { e.takeTexts(jobs) }) {
		return nil, ErrClosed
	}
	rows := make([][]float32, len(jobs))
	for i, j := range jobs {
		select {
		case <-j.done:
		case <-ctx.Done():
			e.post(func() {
				for _, j := range jobs {
					j.gone = true
				}
			})
			return nil, ctx.Err()
		}
		if j.err != nil {
			return nil, j.err
		}
		rows[i] = j.row
	}
	return rows, nil
}

// poolStep computes as many waiting texts as fit into one step.
func (e *Engine) poolStep() (bool, error) {
	e.pooling = slices.DeleteFunc(e.pooling, func(j *pooled) bool { return j.gone })
	var batch []*pooled
	s := &e.step
	s.Tokens, s.Positions, s.Types, s.Seqs = s.Tokens[:0], s.Positions[:0], s.Types[:0], s.Seqs[:0]
	s.Rows, s.Sampling = nil, nil
	for _, j := range e.pooling {
		n := len(j.text.Tokens)
		if len(batch) == e.cfg.Limits.Seqs || len(s.Tokens)+n > e.cfg.Limits.Tokens {
			break
		}
		if _, ok := e.cache.Admit(&j.table, j.text.Tokens, n, false); !ok {
			break
		}
		if !e.cache.Extend(&j.table, 0, n) {
			e.cache.Release(&j.table)
			break
		}
		first := len(s.Tokens)
		s.Tokens = append(s.Tokens, j.text.Tokens...)
		s.Positions = append(s.Positions, j.text.Positions...)
		for i := len(j.text.Positions); i < n; i++ {
			s.Positions = append(s.Positions, int32(i))
		}
		s.Types = append(s.Types, j.text.Types...)
		s.Types = append(s.Types, make([]int32, len(s.Tokens)-len(s.Types))...)
		s.Seqs = append(s.Seqs, kernels.Seq{First: int32(first), Count: int32(n), Context: int32(n), Blocks: j.table.Groups})
		batch = append(batch, j)
	}
	if len(batch) == 0 {
		if len(e.pooling) > 0 {
			panic("BUG: texts wait and none fits an empty step")
		}
		return false, nil
	}
	began := time.Now()
	if err := e.cfg.Exec.Run(s, &e.result); err != nil {
		return true, e.failTexts(batch, err)
	}
	if len(e.result.Output) != len(batch) {
		panic(fmt.Sprintf("BUG: %d rows came back for %d texts", len(e.result.Output), len(batch)))
	}
	e.timings = stepTimes{began: began, ended: time.Now()}
	e.pooling = e.pooling[len(batch):]
	e.stats.pooled(len(s.Tokens), batch)
	for i, j := range batch {
		e.cache.Release(&j.table)
		j.row = slices.Clone(e.result.Output[i])
		close(j.done)
	}
	if e.watch != nil {
		e.watched(began, Plan{}, len(s.Tokens), len(batch))
	}
	return true, nil
}

// failPooling ends all texts that wait.
func (e *Engine) failPooling(err error) {
	for _, j := range e.pooling {
		e.cache.Release(&j.table)
		j.err = err
		close(j.done)
	}
	e.pooling = nil
}
