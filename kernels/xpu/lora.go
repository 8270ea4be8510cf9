package xpu

import (
	"encoding/binary"
	"fmt"
	"math"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu/cl"
)

// adapterHead is the dwords before the matrices of a slot: its rank, its factor.
const adapterHead = 16

// adapters is room for the corrections of one matrix: slots of the same size, side by
// side in an arena. See lora.cl for what stands in one.
type adapters struct {
	out, in, rank, slots int
	arena                *cl.Buffer
	base                 int64 // dwords, from the arena's begin
	each                 int64 // dwords of a slot
}

// Adapters implements kernels.Adapting.
func (b *Backend) Adapters(out, in, slots, rank int) (kernels.Adapters, error) {
	if err := kernels.CheckRoom(out, in, slots, rank); err != nil {
		return nil, err
	}
	s := &adapters{out: out, in: in, rank: rank, slots: slots}
	s.each = adapterHead + halfWords(rank, in) + halfWords(out, rank)
	var err error
	if s.arena, s.base, err = b.room(int64(slots) * s.each); err != nil {
		return nil, fmt.Errorf("%d slots for adapters of rank %d: %w", slots, rank, err)
	}
	for i := range slots {
		if err := s.Clear(i); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// halfWords is the dwords of a bf16 matrix.
func halfWords(out, in int) int64 {
	return int64(tiles(out)) * int64(((in+1)/2+7)/8*8) * tile
}

func (s *adapters) Shape() (out, in int) { return s.out, s.in }
func (s *adapters) Slots() int           { return s.slots }
func (s *adapters) Rank() int            { return s.rank }
func (s *adapters) Bytes() int64         { return 4 * int64(s.slots) * s.each }

// Set implements kernels.Adapters.
func (s *adapters) Set(slot int, a, b kernels.Source, factor float32) error {
	if err := kernels.CheckAdapter(s, slot, a, b); err != nil {
		return err
	}
	raw := make([]byte, 4*adapterHead)
	binary.LittleEndian.PutUint32(raw, uint32(a.Out))
	binary.LittleEndian.PutUint32(raw[4:], math.Float32bits(factor))
	for _, src := range []kernels.Source{a, b} {
		m, err := pack(src, kernels.FormatBF16)
		if err != nil {
			return err
		}
		for _, w := range m.words {
			raw = binary.LittleEndian.AppendUint32(raw, w)
		}
	}
	return s.arena.Write(4*s.at(slot), raw)
}

// at is where a slot begins in the arena.
func (s *adapters) at(slot int) int64 { return s.base + int64(slot)*s.each }

// Clear implements kernels.Adapters.
func (s *adapters) Clear(slot int) error {
	if slot < 0 || slot >= s.slots {
		return fmt.Errorf("slot %d of %d", slot, s.slots)
	}
	return s.arena.Write(4*s.at(slot), make([]byte, 4*adapterHead))
}

// lora records A and B of every part; rows without an adapter end at once.
func (e *executable) lora(op *kernels.LoRA) {
	e.wrote(op.Out)
	l, rows, width := &e.layout, e.rowsOf(op.In), e.p.Width(op.In)
	stride := 0
	for _, a := range op.Adapters {
		stride += tiles(a.Rank()) * tile
	}
	middle := e.lend(e.limits.Tokens * stride)
	first := 0
	for i, a := range op.Adapters {
		s := a.(*adapters)
		e.launch("lora_down", dims(64, 1), func(c counts) []uintptr { return dims(64*tiles(s.rank), rows(c)) },
			s.arena, s.base, s.each, e.step, l.seqs, l.adapters, e.value(op.In), width, middle, stride, first)
		e.launch("lora_up", nil, func(c counts) []uintptr { return dims(s.out, rows(c)) },
			s.arena, s.base, s.each, e.step, l.seqs, l.adapters, middle, stride, first, s.in, e.value(op.Out), e.p.Width(op.Out), op.Columns[i])
		first += tiles(s.rank) * tile
	}
	e.done(middle)
}
