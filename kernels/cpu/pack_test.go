package cpu

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// Packing gives the codes and scales of num.Int8Row at every instruction set, and zeros
// where the matrix has no outputs or columns.
func TestPackInt8(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for _, l := range isas() {
		for _, shape := range [][2]int{{16, 128}, {33, 144}, {5, 260}, {18, 1024}, {2, 7}} {
			t.Run(fmt.Sprintf("%s/%dx%d", l.name, shape[0], shape[1]), func(t *testing.T) {
				src := kernels.Source{Out: shape[0], In: shape[1], Type: kernels.BF16}
				for range src.Out * src.In {
					v := num.BF16(float32(r.NormFloat64()))
					src.Data = append(src.Data, byte(v), byte(v>>8))
				}
				clear(src.Data[:2*src.In]) // a row of zeros
				w := &weight{kind: kindInt8, out: src.Out, in: src.In, tiles: (src.Out + 15) / 16, blocks: (src.In + 127) / 128}
				w.data = make([]byte, w.tiles*w.blocks*blockBytes[kindInt8])
				w.rows = make([]float32, 16*w.tiles)
				w.packInt8(l, src, 0, src.Out)
				row, codes := make([]float32, src.In), make([]int8, w.blocks*128)
				for o := range 16 * w.tiles {
					clear(codes)
					scale := float32(0)
					if o < src.Out {
						num.Row(row, src, o)
						scale = num.Int8Row(codes[:src.In], row)
					}
					got := make([]int8, len(codes))
					for k := range got {
						got[k] = int8(w.data[o/16*w.blocks*2048+64*(k/4)+4*(o%16)+k%4] ^ 0x80)
					}
					if !slices.Equal(got, codes) || w.rows[o] != scale {
						t.Fatalf("row %d: %v · %v; want %v · %v", o, w.rows[o], got, scale, codes)
					}
				}
			})
		}
	}
}

// Pairs of bf16 lie where the kernels read them, at every instruction set: rows and columns
// of any number, from any address, and tiny numbers as zeros.
func TestPackBF16(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 10))
	for _, l := range isas() {
		for _, shape := range [][2]int{{16, 32}, {33, 96}, {5, 64}, {18, 1030}, {48, 62}, {2, 8}} {
			t.Run(fmt.Sprintf("%s/%dx%d", l.name, shape[0], shape[1]), func(t *testing.T) {
				out, in := shape[0], shape[1]
				values, data := make([]uint16, out*in), make([]byte, 1, 1+2*out*in) // at an odd address
				for i := range values {
					values[i] = uint16(r.Uint32())
					if i%3 == 0 {
						values[i] = values[i]&0x803f | (num.BF16(num.Tiny)-32)&0x7fff // near num.Tiny
					}
					data = binary.LittleEndian.AppendUint16(data, values[i])
				}
				w := &weight{kind: kindBF16, out: out, in: in, tiles: (out + 15) / 16, blocks: (in + 31) / 32}
				w.data = make([]byte, w.tiles*w.blocks*1024)
				w.packBF16(l, data[1:], 0, out)
				for o := range 16 * w.tiles {
					for k := range 32 * w.blocks {
						want := uint16(0)
						if o < out && k < in && values[o*in+k]&0x7fff >= num.BF16(num.Tiny) {
							want = values[o*in+k]
						}
						if got := binary.LittleEndian.Uint16(w.data[o/16*w.blocks*1024+64*(k/2)+4*(o%16)+2*(k%2):]); got != want {
							t.Fatalf("(%d, %d): %04x; want %04x", o, k, got, want)
						}
					}
				}
			})
		}
	}
}
