package worker

import (
	"errors"
	"fmt"

	"roundhouse/kernels"
)

// errNoNumbers ends a sequence for which the model computes nothing to choose from.
var errNoNumbers = &kernels.StepError{Seq: -1, Err: errors.New("the model's logits are not numbers")}

// failure is the last event of a sequence that err ended.
func failure(q *Sequence, err error) Event {
	return Event{Choice: q.choice, Token: -1, StopID: -1, Finish: FinishError, Err: err}
}

// failStep ends the sequences that a step failed for: the one that its error
// names, whose others are scheduled again as if the step had not been, or all.
// It returns the error of a backend that can compute no more.
func (e *Engine) failStep(plan Plan, err error) error {
	var failed *kernels.StepError
	if !errors.As(err, &failed) {
		return err
	}
	e.stats.preempted(plan)
	for i, en := range plan.Entries {
		if q := en.Seq; failed.Seq < 0 || failed.Seq == i {
			e.endWith(q.request, q.choice, failure(q, failed))
		}
	}
	return nil
}

// failTexts is failStep for a step of texts.
func (e *Engine) failTexts(batch []*pooled, err error) error {
	for _, j := range batch {
		e.cache.Release(&j.table)
	}
	var failed *kernels.StepError
	if !errors.As(err, &failed) {
		return err // close tells all that wait
	}
	if failed.Seq >= len(batch) {
		panic(fmt.Sprintf("BUG: sequence %d of %d failed", failed.Seq, len(batch)))
	}
	rest := e.pooling[len(batch):]
	if failed.Seq >= 0 {
		rest = append(append(batch[:failed.Seq:failed.Seq], batch[failed.Seq+1:]...), rest...)
		batch = batch[failed.Seq : failed.Seq+1]
	}
	e.pooling = rest
	for _, j := range batch {
		j.err = failed
		close(j.done)
	}
	return nil
}
