package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"roundhouse/kernels"
	"roundhouse/worker/lora"
	"roundhouse/worker/weights"
)

// AdapterRoom says how many adapters a model is to have room for, and of which
// rank at most. The zero value is none.
type AdapterRoom struct{ Slots, Rank int }

// MakeRoom has the model take adapters. It is to be called before anything that
// takes a format.
func (m *Model) MakeRoom(r AdapterRoom) error {
	m.room = r
	if err := kernels.CheckRoom(1, 1, r.Slots, r.Rank); err != nil {
		return err
	}
	g := newGraph(m.settings, m.count(kernels.FormatBF16), m.groups, nil)
	m.arch.record(g)
	if len(g.adapted) == 0 || m.config.Kind != Generate {
		return fmt.Errorf("%s takes no adapters; merge the adapter into the model and serve the result", m.config.Architecture)
	}
	return nil
}

// adapted is a linear that adapters can correct.
type adapted struct {
	module string // its name in the model's files, without ".weight"
	room   kernels.Adapters
}

// part is one matrix of several side by side: its module's last name, its
// outputs, and the column where they begin.
type part struct {
	name        string
	out, column int
}

// adapt records the corrections of a linear by adapters, where there is room for
// any. It comes right behind the linear.
func (g *graph) adapt(in, out kernels.Tensor, prefix string, parts ...part) {
	if g.room.Slots == 0 {
		return
	}
	op := &kernels.LoRA{In: in, Out: out}
	for _, p := range parts {
		room := g.makeRoom(p.out, g.prog.Width(in))
		op.Adapters, op.Columns = append(op.Adapters, room), append(op.Columns, p.column)
		g.adapted = append(g.adapted, adapted{prefix + p.name, room})
	}
	g.prog.Do(op)
}

// makeRoom is room for the adapters of one matrix; without a backend it only
// counts.
func (b *binder) makeRoom(out, in int) kernels.Adapters {
	c := countedRoom{out: out, in: in, room: b.room}
	b.bytes += c.Bytes()
	if b.be == nil || b.err != nil {
		return c
	}
	be, ok := b.be.(kernels.Adapting)
	if !ok {
		b.err = fmt.Errorf("%s takes no adapters: %w", b.be.Name(), errors.ErrUnsupported)
		return c
	}
	room, err := be.Adapters(out, in, b.room.Slots, b.room.Rank)
	if err != nil {
		b.err = err
		return c
	}
	return room
}

// countedRoom is the room of the first pass: a shape and a size.
type countedRoom struct {
	out, in int
	room    AdapterRoom
}

func (c countedRoom) Shape() (out, in int) { return c.out, c.in }
func (c countedRoom) Slots() int           { return c.room.Slots }
func (c countedRoom) Rank() int            { return c.room.Rank }

// Bytes is that of bf16 in whole tiles.
func (c countedRoom) Bytes() int64 {
	up := func(n, to int) int64 { return int64((n + to - 1) / to * to) }
	return 2 * int64(c.room.Slots) * (up(c.room.Rank, 16)*up(c.in, 32) + up(c.out, 16)*up(c.room.Rank, 32))
}

// Set implements kernels.Adapters; nothing is ever set in the first pass.
func (countedRoom) Set(int, kernels.Source, kernels.Source, float32) error {
	panic("BUG: an adapter for a model that is not loaded")
}

// Clear implements kernels.Adapters, likewise.
func (countedRoom) Clear(int) error { panic("BUG: an adapter for a model that is not loaded") }

// Adapters is a built model's room for adapters.
type Adapters struct {
	room    AdapterRoom
	modules []adapted
}

// Room is how much there is.
func (a *Adapters) Room() AdapterRoom { return a.room }

// Load puts an adapter into a slot, between two steps. After an error the slot
// is empty.
func (a *Adapters) Load(slot int, from *lora.Adapter) error {
	if r := from.Rank(); r > a.room.Rank {
		return fmt.Errorf("the adapter has rank %d; there is room for rank %d (--max-lora-rank)", r, a.room.Rank)
	}
	err := a.clear(slot)
	for i := 0; err == nil && i < len(from.Modules); i++ {
		err = a.set(slot, &from.Modules[i])
	}
	if err != nil {
		return errors.Join(err, a.clear(slot))
	}
	return nil
}

// clear empties a slot.
func (a *Adapters) clear(slot int) error {
	for _, t := range a.modules {
		if err := t.room.Clear(slot); err != nil {
			return err
		}
	}
	return nil
}

// set puts one module's correction into a slot.
func (a *Adapters) set(slot int, m *lora.Module) error {
	i := slices.IndexFunc(a.modules, func(t adapted) bool { return t.module == m.Name })
	if i < 0 {
		return fmt.Errorf("the adapter corrects %s; of this model only such as %s can be corrected: merge the adapter into it and serve the result", m.Name, a.names())
	}
	var sources []kernels.Source
	for _, t := range []*weights.Tensor{m.A, m.B} {
		data, err := t.Data()
		if err != nil {
			return err
		}
		if err := allFinite(data, t, 0); err != nil {
			return err
		}
		sources = append(sources, kernels.Source{Name: t.Name, Out: t.Shape[0], In: t.Shape[1], Type: storedType(t.Type), Data: data})
	}
	return a.modules[i].room.Set(slot, sources[0], sources[1], m.Factor)
}

// names lists the last names of what can be corrected.
func (a *Adapters) names() string {
	var list []string
	for _, t := range a.modules {
		if name := t.module[strings.LastIndexByte(t.module, '.')+1:]; !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return strings.Join(list, ", ")
}
