package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// Packing gives the codes and scales of num.Int8Row at every level, and zeros
// where the matrix has no outputs or columns.
func TestPackInt8(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for _, l := range levels() {
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
