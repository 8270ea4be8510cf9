package kernels

import "fmt"

// CheckStep returns the fault of a step of a program under these limits. If one
// sequence asks for something that is not there, it is a *StepError that names the
// sequence; anything else is a fault of the caller. Backends call it
// before they compute, since their kernels do not look again.
func (l Limits) CheckStep(p *Program, s *Step) error {
	if err := l.checkShape(s); err != nil {
		return err
	}
	slots := p.AdapterSlots()
	for i := range s.Seqs {
		if a := s.Seqs[i].Adapter; a < 0 || int(a) > slots {
			return wrong(i, "sequence %d names adapter %d of %d", i, a, slots)
		}
	}
	for _, op := range p.Ops {
		var err error
		switch op := op.(type) {
		case *Embed:
			err = op.checkIDs(s)
		case *Attention:
			if op.KV != nil && op.Layer == 0 && op.Cross > 0 {
				err = s.checkCross(op)
			} else if op.KV != nil && op.Layer == 0 {
				err = s.checkBlocks(op.KV.Spec(), op.Group, op.Window)
			}
		case *Delta:
			if op.Layer == 0 {
				err = s.checkSingle(op.KV.Spec(), op.Group, "state")
			}
		case *Place:
			err = l.checkMedia(s, op.Width)
		case *Sample:
			err = s.checkSampling(p.Width(op.Logits))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkShape compares the parts of a step with each other and the limits.
func (l Limits) checkShape(s *Step) error {
	switch {
	case len(s.Tokens) == 0 || len(s.Tokens) > l.Tokens:
		return fmt.Errorf("step of %d tokens; the limit is %d", len(s.Tokens), l.Tokens)
	case len(s.Positions) != len(s.Tokens) || s.Types != nil && len(s.Types) != len(s.Tokens):
		return fmt.Errorf("step of %d tokens with %d positions and %d types", len(s.Tokens), len(s.Positions), len(s.Types))
	case s.Axes != nil && len(s.Axes) != 3*len(s.Tokens):
		return fmt.Errorf("step of %d tokens with %d positions on axes; want 3 for each", len(s.Tokens), len(s.Axes))
	case len(s.Seqs) == 0 || len(s.Seqs) > l.Seqs:
		return fmt.Errorf("step of %d sequences; the limit is %d", len(s.Seqs), l.Seqs)
	case len(s.Rows) > l.Rows:
		return fmt.Errorf("step of %d sampled rows; the limit is %d", len(s.Rows), l.Rows)
	case s.Sampling != nil && len(s.Sampling) != len(s.Rows):
		return fmt.Errorf("step of %d sampled rows with %d samplings", len(s.Rows), len(s.Sampling))
	}
	next := int32(0)
	for i, q := range s.Seqs {
		if q.First != next || q.Count < 1 || q.Context < q.Count {
			return fmt.Errorf("sequence %d has %d tokens from row %d on, of %d in all; want it to begin at row %d", i, q.Count, q.First, q.Context, next)
		}
		next += q.Count
	}
	if int(next) != len(s.Tokens) {
		return fmt.Errorf("the sequences have %d tokens of the step's %d", next, len(s.Tokens))
	}
	last := int32(-1)
	for _, r := range s.Rows {
		if r <= last || int(r) >= len(s.Tokens) {
			return fmt.Errorf("sampled row %d after row %d, of %d", r, last, len(s.Tokens))
		}
		last = r
	}
	return nil
}

// checkMedia refuses rows of media that are not there, or more of them than
// tokens could stand for.
func (l Limits) checkMedia(s *Step, width int) error {
	rows := len(s.Media) / width
	if len(s.Media)%width != 0 || rows > l.Tokens {
		return fmt.Errorf("step of %d numbers of media in rows of %d; the limit is %d rows", len(s.Media), width, l.Tokens)
	}
	if s.MediaRow != nil && len(s.MediaRow) != len(s.Tokens) {
		return fmt.Errorf("step of %d tokens with %d rows of media named", len(s.Tokens), len(s.MediaRow))
	}
	for i, row := range s.MediaRow {
		if row < -1 || int(row) >= rows {
			return wrong(s.seqOf(int32(i)), "row %d of the step stands for row %d of media, of %d", i, row, rows)
		}
	}
	return nil
}

// seqOf is the sequence of a row of tokens.
func (s *Step) seqOf(row int32) int {
	for i := range s.Seqs {
		if q := &s.Seqs[i]; row < q.First+q.Count {
			return i
		}
	}
	return -1
}

// checkIDs refuses ids beyond their table.
func (op *Embed) checkIDs(s *Step) error {
	rows, _ := op.Table.Shape()
	ids := s.Tokens
	switch op.IDs {
	case PositionIDs:
		ids = s.Positions
	case TypeIDs:
		ids = s.Types
	}
	for i, id := range ids {
		if id < 0 || int(id) >= rows {
			return wrong(s.seqOf(int32(i)), "row %d of the step: id %d is not in a table of %d", i, id, rows)
		}
	}
	return nil
}

// checkBlocks refuses block tables that are too short or name no page.
func (s *Step) checkBlocks(spec KVSpec, group, window int) error {
	for i := range s.Seqs {
		q := &s.Seqs[i]
		if group >= len(q.Blocks) {
			return wrong(i, "sequence %d has %d block tables; the model needs table %d", i, len(q.Blocks), group)
		}
		first := 0
		if window > 0 {
			first = max(0, int(q.Context-q.Count)+1-window) / spec.BlockTokens
		}
		table := q.Blocks[group]
		need := (int(q.Context) + spec.BlockTokens - 1) / spec.BlockTokens
		if len(table) < need {
			return wrong(i, "sequence %d has %d blocks in table %d; %d tokens need %d", i, len(table), group, q.Context, need)
		}
		for k, b := range table[first:need] {
			if b < 0 || int(b) >= spec.Blocks {
				return wrong(i, "sequence %d: block %d of table %d is %d, of %d", i, first+k, group, b, spec.Blocks)
			}
		}
	}
	return nil
}

// checkSingle refuses a sequence without the one block that it has of a group.
func (s *Step) checkSingle(spec KVSpec, group int, name string) error {
	for i := range s.Seqs {
		q := &s.Seqs[i]
		if group >= len(q.Blocks) || len(q.Blocks[group]) == 0 {
			return wrong(i, "sequence %d has no %s in table %d", i, name, group)
		}
		if b := q.Blocks[group][0]; b < 0 || int(b) >= spec.Blocks {
			return wrong(i, "sequence %d: its %s in table %d is %d, of %d", i, name, group, b, spec.Blocks)
		}
	}
	return nil
}

// checkCross refuses a sequence that begins without its frames, or brings some
// later.
func (s *Step) checkCross(op *Attention) error {
	for i := range s.Seqs {
		q, want := &s.Seqs[i], 0
		if q.Context == q.Count {
			want = op.Cross
		}
		if int(q.Frames) != want {
			return wrong(i, "sequence %d brings %d frames in a step from token %d on; want %d", i, q.Frames, q.Context-q.Count, want)
		}
	}
	return s.checkSingle(op.KV.Spec(), op.Group, "block of frames")
}

// checkSampling refuses samplings that name tokens beyond the vocabulary, or are
// not numbers.
func (s *Step) checkSampling(vocab int) error {
	for i := range s.Sampling {
		if err := s.Sampling[i].check(vocab); err != nil {
			return wrong(s.seqOf(s.Rows[i]), "sampled row %d %w", i, err)
		}
	}
	return nil
}

func (s *Sampling) check(vocab int) error {
	switch {
	case !(s.Temperature == 0 || s.Temperature >= leastTemperature && s.Temperature <= mostTemperature):
		return fmt.Errorf("has a temperature of %g; want 0, or %g to %g", s.Temperature, leastTemperature, mostTemperature)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return fmt.Errorf("has a top_p of %g; want 0 to 1", s.TopP)
	case !(s.MinP >= 0 && s.MinP <= 1):
		return fmt.Errorf("has a min_p of %g; want 0 to 1", s.MinP)
	case s.Times < 0 || int(s.Times) > vocab || s.Times > 0 && s.Allowed == nil:
		return fmt.Errorf("has times from token %d on, of %d; want one of the vocabulary, and a mask", s.Times, vocab)
	case s.Allowed != nil && len(s.Allowed) != (vocab+31)/32:
		return fmt.Errorf("has a mask of %d words; %d tokens need %d", len(s.Allowed), vocab, (vocab+31)/32)
	}
	for _, e := range s.Edits {
		if e.Token < 0 || int(e.Token) >= vocab {
			return fmt.Errorf("edits token %d of %d", e.Token, vocab)
		}
		if !(e.Repetition >= 0) || e.Add != e.Add {
			return fmt.Errorf("edits token %d by a repetition penalty of %g and an addend of %g", e.Token, e.Repetition, e.Add)
		}
	}
	for _, p := range s.Probe {
		if p < 0 || int(p) >= vocab {
			return fmt.Errorf("asks for token %d of %d", p, vocab)
		}
	}
	return nil
}
