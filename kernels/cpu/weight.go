package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// weight is a matrix in tiles, or a vector.
type weight struct {
	format  kernels.Format
	out, in int
	vector  []float32 // of what has one column

	kind   int
	tiles  int
	blocks int       // of 32 or 128 columns
	data   []byte    // (tiles, blocks, blockBytes)
	rows   []float32 // a scale for each output (tiles·16), or (tiles, groups, 16); nil: none
	groups int       // of columns with a scale of their own, in fp8; 0: the row has one
	group  int       // blocks of such a group
	halves []byte    // scales (tiles, blocks, 16): fp16 of int4, e8m0 of mxfp4
	zeros  []byte    // zero points (tiles, blocks, 16) of int4
	order  []int32   // the input column of each column; nil: in order
}

func (w *weight) Shape() (out, in int) { return w.out, w.in }

func (w *weight) Bytes() int64 {
	return int64(len(w.data) + 4*len(w.vector) + 4*len(w.rows) + len(w.halves) + len(w.zeros) + 4*len(w.order))
}

// kindOf is the kind of matrix that each format is kept as.
var kindOf = map[kernels.Format]int{kernels.FormatF32: kindF32, kernels.FormatBF16: kindBF16, kernels.FormatF16: kindF16,
	kernels.FormatFP8: kindFP8, kernels.FormatInt8: kindInt8, kernels.FormatInt4: kindInt4,
	kernels.FormatGPTQ: kindInt4Zero, kernels.FormatAWQ: kindInt4Zero, kernels.FormatMXFP4: kindMXFP4}

// Weight implements kernels.Backend. The threads of the backend pack it, unless
// the cache file has it.
func (b *Backend) Weight(src kernels.Source, format kernels.Format) (kernels.Weight, error) {
	if w := b.Kept(src, format); w != nil {
		return w, nil
	}
	w, err := b.pack(src, format)
	if err != nil {
		return nil, err
	}
	if b.cache != nil && b.cache.mapping == nil && b.writing == nil {
		b.cache.packed = append(b.cache.packed, packed{src.Name, w})
	}
	return w, nil
}

// pack makes a weight of its source.
func (b *Backend) pack(src kernels.Source, format kernels.Format) (*weight, error) {
	if err := num.Check(src, format); err != nil {
		return nil, err
	}
	w := &weight{format: format, out: src.Out, in: src.In}
	var err error
	if src.In == 1 {
		if w.vector, err = of[float32](&b.weights, src.Out); err == nil {
			num.Decode(w.vector, src.Type, src.Data, 0)
		}
		if err != nil || format == kernels.FormatVector {
			return w, err
		}
	}
	w.kind = kindOf[format]
	switch {
	case w.kind == kindInt4Zero && src.Group > 0 && src.Group < num.Group:
		w.kind = kindInt4Fine
	case w.kind == kindInt4 && src.Type == kernels.Q4_0:
		w.kind = kindQ4
	}
	columns := blockColumns(w.kind)
	w.tiles, w.blocks = (w.out+15)/16, (w.in+columns-1)/columns
	if w.kind == kindFP8 && src.Type == kernels.F8E4M3 && src.Group != 0 && src.Group < src.In {
		w.groups, w.group = num.ScaleColumns(src), src.Group/32
	}
	if err := b.room(w); err != nil {
		return nil, fmt.Errorf("weight %s: %w", src.Name, err)
	}
	var q *num.Int4
	if w.kind == kindInt4Zero || w.kind == kindInt4Fine {
		if q, err = num.Quantise(src, format); err != nil {
			return nil, err
		}
		w.order = q.Order
	}
	var mu sync.Mutex
	b.team.run(func(thread int) {
		from, to := part(w.tiles, thread, b.team.threads)
		first, last := 16*from, min(16*to, w.out)
		e := error(nil)
		switch {
		case q != nil:
			e = w.packInt4(q, src.Name, first, last)
		case w.kind == kindInt4:
			w.packSymInt4(src, first, last)
		case w.kind == kindQ4:
			w.packQ4(src.Data, first, last)
		case w.kind == kindInt8:
			w.packInt8(b.isa, src, first, last)
		case w.kind == kindBF16 && src.Type == kernels.BF16 && src.In%2 == 0:
			w.packBF16(b.isa, src.Data, first, last)
		default:
			e = w.packRows(src, first, last)
		}
		if e != nil {
			mu.Lock()
			err = e
			mu.Unlock()
		}
	})
	return w, err
}

// room sets memory aside for a matrix.
func (b *Backend) room(w *weight) (err error) {
	if w.data, err = b.weights.bytes(w.tiles * w.blocks * blockBytes[w.kind]); err != nil {
		return err
	}
	switch w.kind {
	case kindInt8:
		fallthrough
	case kindFP8:
		w.rows, err = of[float32](&b.weights, 16*w.tiles*max(w.groups, 1))
	case kindMXFP4:
		w.halves, err = b.weights.bytes(16 * w.tiles * w.blocks)
	case kindInt4Fine:
		if w.zeros, err = b.weights.bytes(64 * w.tiles * w.blocks); err != nil {
			return err
		}
		fallthrough
	case kindQ4:
		w.halves, err = b.weights.bytes(128 * w.tiles * w.blocks)
	case kindInt4Zero:
		if w.zeros, err = b.weights.bytes(16 * w.tiles * w.blocks); err != nil {
			return err
		}
		fallthrough
	case kindInt4:
		w.halves, err = b.weights.bytes(32 * w.tiles * w.blocks)
	}
	return err
}

// packRows packs outputs first to last of a source of any type.
func (w *weight) packRows(src kernels.Source, first, last int) error {
	row, codes, scales := make([]float32, w.in), make([]byte, w.in), make([]float32, max(w.groups, 1))
	for o := first; o < last; o++ {
		switch {
		case w.kind == kindMXFP4:
			w.packMXFP4(src, o)
			continue
		case w.kind == kindFP8 && src.Type == kernels.F8E4M3:
			copy(codes, src.Data[o*w.in:])
			num.ScaleRow(scales, src, o)
			for g, s := range scales {
				w.rows[w.scale(o, g)] = s * 256
			}
		default:
			num.Row(row, src, o)
		}
		switch w.kind {
		case kindFP8:
			if src.Type != kernels.F8E4M3 {
				w.rows[o] = num.FP8Row(codes, row) * 256
			}
			for k, c := range codes {
				if c&0x7f == 0x7f {
					return fmt.Errorf("weight %s as %v: element (%d, %d) is not a number", src.Name, w.format, o, k)
				}
			}
		}
		w.packRow(o, row, codes)
	}
	return nil
}

// packMXFP4 packs one output: eight codes a dword, as the source has them.
func (w *weight) packMXFP4(src kernels.Source, o int) {
	for b := range w.blocks {
		block := (o/16*w.blocks + b) * blockBytes[kindMXFP4]
		codes := src.Data[o*w.in/2+16*b:][:16]
		for r := range 4 {
			copy(w.data[block+64*r+4*(o%16):], codes[4*r:4*r+4])
		}
		w.halves[(o/16*w.blocks+b)*16+o%16] = src.Scales[o*w.blocks+b]
	}
}

// scale is the place of the scale of row o and group g.
func (w *weight) scale(o, g int) int {
	return o/16*max(w.groups, 1)*16 + g*16 + o%16
}

// packRow puts one output's row into its lane of its tile.
func (w *weight) packRow(o int, row []float32, codes []byte) {
	tile := w.data[o/16*w.blocks*blockBytes[w.kind]:]
	lane := o % 16
	switch w.kind {
	case kindF32:
		for k, v := range row {
			binary.LittleEndian.PutUint32(tile[64*k+4*lane:], math.Float32bits(v))
		}
	case kindBF16:
		for k, v := range row {
			binary.LittleEndian.PutUint16(tile[64*(k/2)+4*lane+2*(k&1):], num.BF16(num.Operand(v)))
		}
	case kindF16:
		for k, v := range row {
			binary.LittleEndian.PutUint16(tile[32*k+2*lane:], num.F16(v))
		}
	case kindFP8:
		for k, c := range codes {
			tile[16*k+lane] = c
		}
	}
}

// packBF16 packs outputs of a bf16 source, whose pairs of columns are the
// dwords of the layout already.
func (w *weight) packBF16(l *isa, data []byte, first, last int) {
	for o := first; o < last; o += 16 {
		rows := min(16, last-o)
		l.pairsBF16(w.data[o/16*w.blocks*1024:][:w.blocks*1024], data[2*o*w.in:][:2*rows*w.in], w.in, rows, 0)
	}
}

// packSymInt4 quantises and packs outputs first to last.
func (w *weight) packSymInt4(src kernels.Source, first, last int) {
	row, codes := make([]float32, w.in), make([]uint8, num.Group)
	for o := first; o < last; o++ {
		num.Row(row, src, o)
		for g := range w.blocks {
			half := num.SymInt4(codes, row[g*num.Group:][:num.Group])
			w.putGroup(o, g, codes, half)
		}
	}
}

// packInt4 packs four-bit codes with their scales and zero points. Groups of
// more than 128 columns repeat theirs.
func (w *weight) packInt4(q *num.Int4, name string, first, last int) error {
	half := func(o int, s float32) (uint16, error) {
		half := num.F16(s)
		if num.FromF16(half) != s {
			return 0, fmt.Errorf("weight %s as %v: scale %v of row %d is not a half-precision number", name, w.format, s, o)
		}
		return half, nil
	}
	if w.kind == kindInt4Fine {
		return w.packFine(q, half, first, last)
	}
	groups, each := w.in/q.Group, q.Group/num.Group
	for o := first; o < last; o++ {
		for g := range w.blocks {
			bits, err := half(o, q.Scales[o*groups+g/each])
			if err != nil {
				return err
			}
			w.putGroup(o, g, q.Codes[o*w.in+g*num.Group:][:num.Group], bits)
			w.zeros[(o/16*w.blocks+g)*16+o%16] = q.Zeros[o*groups+g/each]
		}
	}
	return nil
}

// putGroup puts the codes and the scale of one group into their lane.
func (w *weight) putGroup(o, g int, codes []uint8, half uint16) {
	w.putCodes(o, g, codes)
	at := (o/16*w.blocks + g)
	binary.LittleEndian.PutUint16(w.halves[2*(16*at+o%16):], half)
}

// putCodes puts the codes of one group of 128 into their lane.
func (w *weight) putCodes(o, g int, codes []uint8) {
	at := (o/16*w.blocks + g)
	lane := w.data[1024*at+4*(o%16):]
	for i := 0; i < 64; i += 4 {
		low, high := binary.LittleEndian.Uint32(codes[i:]), binary.LittleEndian.Uint32(codes[64+i:])
		binary.LittleEndian.PutUint32(lane[16*i:], low|high<<4)
	}
}

// read is row o of a table.
func (w *weight) read(row []float32, o int) {
	tile := w.data[o/16*w.blocks*blockBytes[w.kind]:]
	lane := o % 16 * 4
	switch w.kind {
	case kindF32:
		for k := range row {
			row[k] = math.Float32frombits(binary.LittleEndian.Uint32(tile[64*k+lane:]))
		}
	case kindBF16:
		for k := range row {
			row[k] = num.FromBF16(binary.LittleEndian.Uint16(tile[64*(k/2)+lane+2*(k&1):]))
		}
	case kindInt8:
		scale := w.rows[o]
		for k := range row {
			row[k] = float32(int8(tile[64*(k/4)+lane+k%4]^0x80)) * scale
		}
	default:
		for k := range row {
			row[k] = w.at(o, k)
		}
	}
}

// at is the value of element (o, k), for tables that are read by row.
func (w *weight) at(o, k int) float32 {
	tile := w.data[o/16*w.blocks*blockBytes[w.kind]:]
	lane := o % 16
	switch w.kind {
	case kindF32:
		return math.Float32frombits(binary.LittleEndian.Uint32(tile[64*k+4*lane:]))
	case kindBF16:
		return num.FromBF16(binary.LittleEndian.Uint16(tile[64*(k/2)+4*lane+2*(k&1):]))
	case kindF16:
		return num.FromF16(binary.LittleEndian.Uint16(tile[32*k+2*lane:]))
	case kindFP8:
		g := 0
		if w.groups > 0 {
			g = k / (32 * w.group)
		}
		return num.FromE4M3(tile[16*k+lane]) * (w.rows[w.scale(o, g)] / 256)
	case kindMXFP4:
		code := tile[256*(k/32)+64*(k%32/8)+4*lane+k%8/2] >> (k % 2 * 4)
		return num.FromE2M1(code) * math.Float32frombits(uint32(w.halves[(o/16*w.blocks+k/32)*16+lane])<<23)
	case kindInt8:
		return float32(int8(tile[64*(k/4)+4*lane+k%4]^0x80)) * w.rows[o]
	}
	if w.order != nil {
		k = slices.Index(w.order, int32(k))
	}
	g, i := k/128, k%128
	code := tile[1024*g+64*(i%64/4)+4*lane+i%4] >> (i / 64 * 4) & 15
	at := (o/16*w.blocks+g)*16 + lane
	if fine(w.kind) {
		at = w.finePlace(o, g, i/fineGroup)
	}
	zero := 8
	if w.zeros != nil {
		zero = int(w.zeros[at])
	}
	return float32(int(code)-zero) * num.FromF16(binary.LittleEndian.Uint16(w.halves[2*at:]))
}
