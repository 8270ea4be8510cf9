package resume

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzCuts cuts the bytes of a worker into reads in some way: the client gets the
// same bytes as where they come in one read, and the same is kept to go on with.
func FuzzCuts(f *testing.F) {
	all := kinds()
	for i := range all {
		f.Add(uint8(i), []byte{0})
		f.Add(uint8(i), []byte{7, 200, 1})
	}
	f.Fuzz(func(t *testing.T, which uint8, cuts []byte) {
		k := all[int(which)%len(all)]
		want, _ := uncut(t, k, 0)
		one, r := begin(k), begin(k)
		if whole, err := one.live(nil, nil); err != nil || !whole {
			t.Fatalf("%s: in one read: whole %v, %v", k.name, whole, err)
		}
		if whole, err := r.live(nil, cuts); err != nil || !whole {
			t.Fatalf("%s: whole %v, %v", k.name, whole, err)
		}
		if !bytes.Equal(r.out, want) {
			t.Fatalf("%s: cut after %v the client gets\n%s\nand in one read\n%s", k.name, cuts, r.out, want)
		}
		for i := range r.s.choices {
			got, want := &r.s.choices[i], &one.s.choices[i]
			if !bytes.Equal(got.said.text, want.said.text) || !slices.Equal(got.tokens, want.tokens) || got.lost != want.lost {
				t.Fatalf("%s: cut after %v, of choice %d are kept %q, %v, not all %v; in one read %q, %v, %v", k.name, cuts, i,
					got.said.text, got.tokens, got.lost, want.said.text, want.tokens, want.lost)
			}
		}
	})
}

// FuzzDeath ends the workers after some bytes each, or has them abort the answer, and
// lets the next go on in each way that there is: the client understands the same as without a death. It
// gets less only where its stream then ends with an error.
func FuzzDeath(f *testing.F) {
	all := kinds()
	for i := range all {
		f.Add(uint8(i), uint16(600), uint16(900), uint16(300), []byte{50})
		f.Add(uint8(i), uint16(1200), uint16(100), uint16(2000), []byte{})
		f.Add(uint8(i), uint16(abortBit+700), uint16(abortBit+900), uint16(400), []byte{90})
	}
	f.Fuzz(func(t *testing.T, which uint8, one, two, three uint16, cuts []byte) {
		k := all[int(which)%len(all)]
		r := begin(k)
		whole, err := r.live([]int{int(one), int(two), int(three)}, cuts)
		if err != nil {
			t.Fatalf("%s: ways %v: %v\n%s", k.name, r.ways, err, r.out)
		}
		if !whole {
			t.Fatalf("%s: ways %v: there is no way on behind\n%s", k.name, r.ways, r.out)
		}
		want, _ := uncut(t, k, r.from)
		if err := same(t, k.api, want, r.out); err != nil {
			t.Fatalf("%s: ways %v: %v\n%s\n--- uncut\n%s", k.name, r.ways, err, r.out, want)
		}
	})
}
