package worker

import (
	"slices"
	"strconv"
	"sync"

	"roundhouse/worker/api"
)

// Bounds of what is kept for doors: a door that died is forgotten, and one
// whose requests were lost on the way does not grow the report.
const (
	maxDoors  = 64
	maxBeyond = 256
	maxLate   = 64 // numbers before a door's first one that may still be on their way
	maxEnded  = 8  // digests kept of one block
	maxEvicts = 4096
)

// doors is what the engine keeps of each front door. Arrivals are noted by the
// handlers, so its own lock guards it.
type doors struct {
	mu     sync.Mutex
	byID   map[string]*door
	age    uint64
	chunks map[int32][]chunk // digests that a block of the first group ends
	evicts []chunk           // ring of the latest evictions
	gone   uint64            // evictions ever
}

type door struct {
	through uint64
	beyond  []uint64 // ascending
	live    map[*request]struct{}
	first   bool   // no request has come yet
	seen    uint64 // age at the last arrival
}

// chunk is one of a door's prompt-chunk digests.
type chunk struct{ door, digest string }

func newDoors() *doors { return &doors{byID: map[string]*door{}, chunks: map[int32][]chunk{}} }

// Arrived notes that a request with this sequence number of this door has come
// in, whatever becomes of it.
func (e *Engine) Arrived(id string, seq uint64) {
	e.doors.mu.Lock()
	e.doors.get(id).note(seq)
	e.doors.mu.Unlock()
	e.post(func() {}) // a change to report
}

func (d *doors) get(id string) *door {
	d.age++
	x := d.byID[id]
	if x == nil {
		if len(d.byID) >= maxDoors {
			d.forget()
		}
		x = &door{live: map[*request]struct{}{}, first: true}
		d.byID[id] = x
	}
	x.seen = d.age
	return x
}

// forget drops the door that was silent longest and has nothing here.
func (d *doors) forget() {
	oldest := ""
	for id, x := range d.byID {
		if len(x.live) == 0 && (oldest == "" || x.seen < d.byID[oldest].seen) {
			oldest = id
		}
	}
	delete(d.byID, oldest)
}

// note adds a sequence number. The first one that a door sends here sets where
// its count begins.
func (x *door) note(seq uint64) {
	if x.first {
		x.first = false
		x.through = seq - min(seq, maxLate)
	}
	if seq <= x.through {
		return
	}
	if i, found := slices.BinarySearch(x.beyond, seq); !found {
		x.beyond = slices.Insert(x.beyond, i, seq)
	}
	if len(x.beyond) > maxBeyond {
		x.through = x.beyond[0]
	}
	for len(x.beyond) > 0 && x.beyond[0] <= x.through+1 {
		x.through = max(x.through, x.beyond[0])
		x.beyond = x.beyond[1:]
	}
}

func (d *doors) arrive(r *request) {
	if r.Door == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.get(r.Door).live[r] = struct{}{}
}

func (d *doors) leave(r *request) {
	if r.Door == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.byID[r.Door]; x != nil {
		delete(x.live, r)
	}
}

// length is how much of a prompt a digest stands for, beside the others: its last
// digit says how many times the chunk was doubled.
func length(digest string) int {
	var doubled int
	if n, err := strconv.ParseUint(digest[max(len(digest)-1, 0):], 16, 4); err == nil {
		doubled = int(n)
	}
	return 1 << doubled
}

// computed maps the digests of a prompt that is all in the cache to the blocks
// that end its chunks, which are taken to be as long in tokens as in bytes.
func (d *doors) computed(r *request, q *Sequence, blockTokens int) {
	if len(r.Chunks) == 0 || len(q.Table.Groups) == 0 {
		return
	}
	all, to := 0, 0
	for _, digest := range r.Chunks {
		all += length(digest)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, digest := range r.Chunks {
		to += length(digest)
		end := to * q.Prompt / all
		b := min((end-1)/blockTokens, q.Prompt/blockTokens-1)
		if b < 0 || q.Table.Groups[0][b] < 0 {
			continue
		}
		c := chunk{r.Door, digest}
		if id := q.Table.Groups[0][b]; len(d.chunks[id]) < maxEnded && !slices.Contains(d.chunks[id], c) {
			d.chunks[id] = append(d.chunks[id], c)
		}
	}
}

// evict records the digests of blocks that have left the cache.
func (d *doors) evict(blocks []int32) {
	if len(blocks) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range blocks {
		for _, c := range d.chunks[id] {
			d.evicts = append(d.evicts, c)
			d.gone++
		}
		delete(d.chunks, id)
	}
	if n := len(d.evicts) - maxEvicts; n > 0 {
		d.evicts = slices.Delete(d.evicts, 0, n)
	}
}

// report fills in what each door has here.
func (d *doors) report(e *Engine) map[string]api.DoorStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.byID) == 0 {
		return nil
	}
	out := make(map[string]api.DoorStatus, len(d.byID))
	for id, x := range d.byID {
		seen := map[int32]struct{}{}
		for r := range x.live {
			for _, q := range r.choices {
				if q == nil || len(q.Table.Groups) == 0 {
					continue
				}
				for _, b := range q.Table.Groups[0] {
					if b >= 0 {
						seen[b] = struct{}{}
					}
				}
			}
		}
		out[id] = api.DoorStatus{
			Through: x.through, Beyond: slices.Clone(x.beyond), ResidentTokens: int64(len(seen) * e.cache.BlockTokens()),
		}
	}
	return out
}

// since returns the evictions after the first n ever, by door, and their new
// number.
func (d *doors) since(n uint64) (map[string][]string, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out map[string][]string
	for _, c := range d.evicts[len(d.evicts)-int(min(d.gone-n, uint64(len(d.evicts)))):] {
		if out == nil {
			out = map[string][]string{}
		}
		out[c.door] = append(out[c.door], c.digest)
	}
	return out, d.gone
}
