package xpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"roundhouse/kernels"
)

// layout says where each part of a step lies in its one upload, in dwords.
type layout struct {
	tokens, positions, types int // (tokens)
	axes                     int // (tokens, 3), where a program turns by them
	mediaRow                 int // (tokens), where a program places media
	seqs, selfs              int // (tokens) which sequence, and where in it
	rows                     int // (rows)
	firsts, counts, contexts int // (seqs)
	adapters                 int // (seqs): slots, from 1 on; 0 is none
	features                 int // (frames, width), as bits
	grids                    int // (convolutions, seqs, gridWords)
	tables                   int // (groups, seqs): where each block table begins
	blocks                   int // the block tables
	media                    int // (tokens, width), as bits, behind all that every step has
	groups                   int
	turns, places            bool  // the program turns by axes; places media
	rowTiles                 int   // (sizes, tokens): tiles of rows, as pairs of the first and how many
	tileRows                 []int // the sizes
	words                    int   // in all
}

// layoutOf places the parts for the most that the limits allow. A sequence has no
// more blocks than the longest context, or else than its group has pages.
func layoutOf(p *kernels.Program, limits kernels.Limits, tileRows []int) layout {
	l := layout{tileRows: tileRows}
	pages := map[int]int{}
	features, convolutions, axes, media := 0, 0, 0, 0
	for _, op := range p.Ops {
		group, c := 0, kernels.KV(nil)
		switch op := op.(type) {
		case *kernels.Features:
			features = max(features, limits.Frames*p.Width(op.Out))
			if p.Values[op.Out].Rows == kernels.Tokens {
				features = limits.Tokens * p.Width(op.Out)
			}
		case *kernels.Convolution:
			convolutions++
		case *kernels.RoPE:
			if op.Axes != nil {
				axes = 3 * limits.Tokens
			}
		case *kernels.Place:
			media = limits.Tokens * op.Width
		case *kernels.Attention:
			group, c = op.Group, op.KV
		case *kernels.Delta:
			group, c = op.Group, op.KV
		}
		if c != nil {
			pages[group] = max(pages[group], tableOf(c.Spec(), limits))
			l.groups = max(l.groups, group+1)
		}
	}
	at := 0
	part := func(n int) int {
		begin := at
		at += n
		return begin
	}
	l.tokens, l.positions, l.types = part(limits.Tokens), part(limits.Tokens), part(limits.Tokens)
	l.axes = part(axes)
	l.mediaRow = part(min(media, limits.Tokens))
	l.turns, l.places = axes > 0, media > 0
	l.seqs, l.selfs = part(limits.Tokens), part(limits.Tokens)
	l.rows = part(limits.Rows)
	l.firsts, l.counts, l.contexts = part(limits.Seqs), part(limits.Seqs), part(limits.Seqs)
	l.adapters = part(limits.Seqs)
	l.features, l.grids = part(features), part(convolutions*limits.Seqs*gridWords)
	l.rowTiles = part(2 * len(tileRows) * limits.Tokens)
	l.tables = part(l.groups * limits.Seqs)
	l.blocks = at
	for _, n := range pages {
		at += n * limits.Seqs
	}
	l.media = part(media)
	l.words = max(at, 1)
	return l
}

// tableOf is the longest block table that a sequence can have.
func tableOf(spec kernels.KVSpec, limits kernels.Limits) int {
	switch {
	case spec.StateBytes > 0:
		return 1
	case limits.Context > 0:
		return (limits.Context + spec.BlockTokens - 1) / spec.BlockTokens
	}
	return spec.Blocks
}

// wrong is an error of one sequence of a step.
func wrong(seq int, format string, args ...any) error {
	return &kernels.StepError{Seq: seq, Err: fmt.Errorf("sequence %d "+format, append([]any{seq}, args...)...)}
}

// fill writes a step where the kernels read it.
func (e *executable) fill(s *kernels.Step) error {
	l := &e.layout
	e.takeHost()
	copy(e.words[l.tokens:], s.Tokens)
	copy(e.words[l.positions:], s.Positions)
	types := e.words[l.types:][:len(s.Tokens)]
	clear(types)
	copy(types, s.Types)
	copy(e.words[l.rows:], s.Rows)
	e.fillAxes(s)
	e.fillTiles(s)
	e.fillFeatures(s)
	at := l.blocks
	for i, q := range s.Seqs {
		e.words[l.firsts+i], e.words[l.counts+i], e.words[l.contexts+i] = q.First, q.Count, q.Context
		e.words[l.adapters+i] = q.Adapter
		for n := range int(q.Count) {
			row := int(q.First) + n
			e.words[l.seqs+row], e.words[l.selfs+row] = int32(i), q.Context-q.Count+int32(n)
		}
		for g := range l.groups {
			if g >= len(q.Blocks) {
				return wrong(i, "has %d block tables; the program reads %d", len(q.Blocks), l.groups)
			}
			if at+len(q.Blocks[g]) > l.media {
				return wrong(i, "has a block table of %d, more than a sequence can have", len(q.Blocks[g]))
			}
			e.words[l.tables+g*e.limits.Seqs+i] = int32(at)
			at += copy(e.words[at:], q.Blocks[g])
		}
	}
	for i, w := range e.words[:at] {
		binary.LittleEndian.PutUint32(e.raw[4*i:], uint32(w))
	}
	if err := e.step.WriteLater(0, e.raw[:4*at]); err != nil || !e.placing {
		return err
	}
	for i, x := range s.Media {
		binary.LittleEndian.PutUint32(e.raw[4*(l.media+i):], math.Float32bits(x))
	}
	return e.step.WriteLater(4*int64(l.media), e.raw[4*l.media:][:4*len(s.Media)])
}

// takeHost sets the host's side of a step aside, or takes what is shared.
func (e *executable) takeHost() {
	n, shared := e.layout.words, &e.b.shared
	if e.limits.Shared {
		if len(shared.words) < n {
			shared.words, shared.raw = make([]int32, n), make([]byte, 4*n)
		}
		e.words, e.raw, e.host = shared.words, shared.raw, shared.host
		return
	}
	if e.words == nil {
		e.words, e.raw = make([]int32, n), make([]byte, 4*n)
	}
}

// fillAxes writes the positions on all axes, and which tokens stand for media.
func (e *executable) fillAxes(s *kernels.Step) {
	l := &e.layout
	if l.turns && s.Axes != nil {
		copy(e.words[l.axes:], s.Axes)
	} else if l.turns {
		for i, p := range s.Positions {
			for axis := range 3 {
				e.words[l.axes+3*i+axis] = p
			}
		}
	}
	e.placing = l.places && len(s.Media) > 0 && s.MediaRow != nil
	if e.placing {
		copy(e.words[l.mediaRow:], s.MediaRow)
	}
}

// fillTiles cuts each sequence's rows into tiles of each size, none of which holds rows
// of two sequences.
func (e *executable) fillTiles(s *kernels.Step) {
	e.tiled = e.tiled[:0]
	for i, size := range e.layout.tileRows {
		to, n := e.words[e.layout.rowTiles+2*i*e.limits.Tokens:], 0
		for _, q := range s.Seqs {
			for row := int32(0); row < q.Count; row += int32(size) {
				to[2*n], to[2*n+1] = q.First+row, min(int32(size), q.Count-row)
				n++
			}
		}
		e.tiled = append(e.tiled, n)
	}
}

// Run implements kernels.Executable.
func (e *executable) Run(s *kernels.Step, out *kernels.Result) (err error) {
	if err := e.limits.CheckStep(e.p, s); err != nil {
		return err
	}
	if err := e.grids.Fill(s, e.limits); err != nil {
		return err
	}
	defer e.caught(&err)
	if err := e.fill(s); err != nil {
		return err
	}
	e.made = e.made[:0]
	for kind := kernels.Frames; int(kind) < e.p.Kinds(); kind++ {
		e.made = append(e.made, e.grids.Count(kind))
	}
	c := counts{len(s.Tokens), len(s.Rows), len(s.Seqs), e.made}
	if e.timed {
		return e.runTimed(s, c, out)
	}
	for _, l := range e.launches {
		if err := l.run(c); err != nil {
			return err
		}
	}
	return e.results(s, c, out)
}

// Time implements kernels.Timed. A queue tells no times unless it was made for it, so
// each launch is waited for; that costs a step some of its time.
func (e *executable) Time(on bool) { e.timed = on }

// Spans implements kernels.Timed.
func (e *executable) Spans() []kernels.Span { return e.spans }

// runTimed runs the launches one after the other.
func (e *executable) runTimed(s *kernels.Step, c counts, out *kernels.Result) error {
	e.spans = e.spans[:0]
	take := func(op string, run func() error) error {
		began := time.Now()
		err := run()
		if err == nil {
			err = e.b.ctx.Finish()
		}
		e.spans = append(e.spans, kernels.Span{Op: op, Began: began, Ended: time.Now()})
		return err
	}
	if err := take("upload", func() error { return nil }); err != nil {
		return err
	}
	for _, l := range e.launches {
		if err := take(l.op, func() error { return l.run(c) }); err != nil {
			return err
		}
	}
	return take("results", func() error { return e.results(s, c, out) })
}

// caught makes a panic an error of its step. What was enqueued is waited for, since it
// may read and write what the next step will. It is to be deferred.
func (e *executable) caught(err *error) {
	if p := recover(); p != nil {
		*err = kernels.Panicked(p)
		if lost := e.b.ctx.Finish(); lost != nil {
			*err = lost
		}
	}
}

// results reads what the step asks for. Everything that is to be brought back is
// enqueued before the first wait, so that a step which decodes has one.
func (e *executable) results(s *kernels.Step, c counts, out *kernels.Result) error {
	*out = kernels.Result{}
	rows := 0 // of logits
	if e.sampled != kernels.None && s.WantLogits {
		rows = c.sampled
	}
	total := rows * e.width(e.sampled)
	for _, t := range e.outputs {
		total += c.of(e.p.Values[t].Rows) * e.p.Width(t)
	}
	if cap(e.host) < total {
		e.host = make([]float32, total)
		if e.limits.Shared {
			e.b.shared.host = e.host
		}
	}
	e.host, e.rowsOut = e.host[:0], e.rowsOut[:0]
	choosing := e.sampled != kernels.None && len(s.Sampling) > 0
	if choosing {
		if err := e.sampler.begin(s.Sampling); err != nil {
			return err
		}
	}
	for _, t := range e.outputs {
		if err := e.read(t, c); err != nil {
			return err
		}
	}
	first := len(e.rowsOut)
	if rows > 0 {
		if err := e.read(e.sampled, c); err != nil {
			return err
		}
		out.Logits = e.rowsOut[first:]
	}
	if len(e.outputs) > 0 {
		out.Output = e.rowsOut[:first]
	}
	if choosing {
		var err error
		out.Sampled, err = e.sampler.end(s.Sampling)
		return err
	}
	if total == 0 {
		return e.b.ctx.Finish()
	}
	return nil
}

// width is the columns of a value; 0 for None.
func (e *executable) width(t kernels.Tensor) int {
	if t == kernels.None {
		return 0
	}
	return e.p.Width(t)
}

// read appends the rows of a value to what was brought to the host.
func (e *executable) read(t kernels.Tensor, c counts) error {
	n, width := c.of(e.p.Values[t].Rows), e.p.Width(t)
	at := len(e.host)
	e.host = e.host[:at+n*width]
	for i := range n {
		e.rowsOut = append(e.rowsOut, e.host[at+i*width:][:width])
	}
	return e.values[t].Read(0, bytesOfFloats(e.host[at:]))
}

// floatBytes is numbers as the device reads them.
func floatBytes(x []float32) []byte {
	raw := make([]byte, 0, 4*len(x))
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
}
