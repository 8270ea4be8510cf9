package canary

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"
)

// How many conversations are known by the side that they began at, and for how long after
// their last request: twice as many, or as long, where they come evenly.
const (
	keptMost = 1 << 16
	keptFor  = time.Hour
)

// kept is which side conversations began at. A share that grows takes in those that begin,
// and moves none that is under way.
type kept struct {
	now, before map[uint64]bool // by conversation: it is at the model on trial
	turned      time.Time
	untold      []uint64 // what other doors have not been told of
	unsaved     bool     // something began that is not written down
}

// conversation tells one conversation from another.
func conversation(name string) uint64 { return xxhash.Sum64String(name) &^ 1 }

// find says where a conversation is.
func (k *kept) find(c uint64, now time.Time) (on, known bool) {
	k.turn(now)
	if on, known = k.now[c]; known {
		return on, true
	}
	if on, known = k.before[c]; known {
		k.now[c] = on // it goes on
	}
	return on, known
}

// note keeps where a conversation is.
func (k *kept) note(c uint64, on bool, now time.Time) {
	k.turn(now)
	k.now[c] = on
}

// turn forgets what has not been asked for, for long.
func (k *kept) turn(now time.Time) {
	if k.now == nil || len(k.now) >= keptMost || now.Sub(k.turned) >= keptFor {
		k.before, k.now, k.turned = k.now, map[uint64]bool{}, now
	}
}

// begins keeps where a new conversation is, for other doors, too.
func (k *kept) begins(c uint64, on bool, now time.Time) {
	k.note(c, on, now)
	k.unsaved = true
	if len(k.untold) < keptMost {
		k.untold = append(k.untold, word(c, on))
	}
}

// word is a conversation and its side.
func word(c uint64, on bool) uint64 {
	if on {
		return c | 1
	}
	return c
}

// export is all that is kept, eight bytes each.
func (k *kept) export() []byte {
	var words []uint64
	for c, on := range k.now {
		words = append(words, word(c, on))
	}
	for c, on := range k.before {
		if _, again := k.now[c]; !again {
			words = append(words, word(c, on))
		}
	}
	return packed(words)
}

// take keeps what another door or a file knows, where nothing is known here.
func (k *kept) take(data []byte, now time.Time) {
	for ; len(data) >= 8; data = data[8:] {
		w := binary.LittleEndian.Uint64(data)
		_, fresh := k.now[w&^1]
		if _, known := k.before[w&^1]; !known && !fresh {
			k.note(w&^1, w&1 == 1, now)
		}
	}
}

func packed(words []uint64) []byte {
	out := make([]byte, 0, 8*len(words))
	for _, w := range words {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

// place is where between 0 and 1 a conversation stands in a trial: at the model on trial
// below the share. All doors find the same, and two trials different ones, so that the
// first are not always the same people.
func place(c uint64, model string) float64 {
	x := c ^ xxhash.Sum64String(model)
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return float64(x>>11) / math.Exp2(53)
}
