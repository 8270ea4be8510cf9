package fleet

import (
	"encoding/binary"

	"roundhouse/balancer/control"
	"roundhouse/balancer/ledger"
)

// Facts is what was learned of the pool's models.
func (p *Pool) Facts() (out []control.ModelFacts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for model, l := range p.learned {
		bytes, output := l.Learned()
		out = append(out, control.ModelFacts{Pool: p.Name, Model: model, Bytes: bytes, Output: output})
	}
	return out
}

// ExportPrefix packs what a pool's prefix table knows.
func (p *Pool) ExportPrefix(t *ledger.PrefixTable) control.PrefixFacts {
	f := control.PrefixFacts{Pool: p.Name}
	for _, w := range *p.Workers.Load() {
		for w.Slot >= len(f.Workers) {
			f.Workers = append(f.Workers, "")
		}
		f.Workers[w.Slot] = w.ID
	}
	f.Words = (len(f.Workers) + 63) / 64
	for _, k := range t.Export(handedChunks) {
		f.Chunks = binary.LittleEndian.AppendUint64(f.Chunks, k.Digest)
		for i := range f.Words {
			set := uint64(0)
			if i < len(k.Workers) {
				set = k.Workers[i]
			}
			f.Chunks = binary.LittleEndian.AppendUint64(f.Chunks, set)
		}
	}
	return f
}

// TakePrefix enters what another door's table knows, under this door's bits.
func (p *Pool) TakePrefix(f *control.PrefixFacts) {
	t := p.Prefix.Load()
	if t == nil || f.Words < 1 || f.Words > 1<<10 {
		return
	}
	slots := make([]int, len(f.Workers))
	for i, id := range f.Workers {
		slots[i] = -1
		for _, w := range *p.Workers.Load() {
			if w.ID == id {
				slots[i] = w.Slot
			}
		}
	}
	size := 8 * (1 + f.Words)
	one := make([]uint64, 1)
	for b := f.Chunks; len(b) >= size; b = b[size:] {
		one[0] = binary.LittleEndian.Uint64(b)
		for bit, slot := range slots {
			if slot >= 0 && binary.LittleEndian.Uint64(b[8+8*(bit/64):])&(1<<(bit%64)) != 0 {
				t.Add(slot, one)
			}
		}
	}
}

// What is handed over of the prefix tables at most: the chunks used last.
const handedChunks = 1 << 18
