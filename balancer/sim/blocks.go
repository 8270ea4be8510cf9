package sim

import "container/list"

// blockTokens is how many tokens one of a job's blocks stands for.
const blockTokens = 512

// oneBlock makes the digest of a block that is as long as all others, as the
// ledger reads it.
func oneBlock(id uint64) uint64 { return id << 4 }

// blocks is a simulated engine's KV cache: what live jobs hold, a block that
// several hold counted once, and prefixes in what is idle, the least recently
// used evicted first.
type blocks struct {
	capacity int // tokens
	used     int // tokens that live jobs hold
	known    map[uint64]*block
	idle     *list.List // of digests, the most recently used in front
	evicted  []uint64   // since the last scrape
}

// block is one block that can be hit.
type block struct {
	holders int
	at      *list.Element // in idle, nil while a job holds it
}

func newBlocks(capacity int) blocks {
	return blocks{capacity: capacity, known: map[uint64]*block{}, idle: list.New()}
}

// admit takes a job's tokens in, if there is room for all of them, and says how
// many of them are cached.
func (b *blocks) admit(j *Job, alone bool) (hit int, ok bool) {
	need := j.tokens()
	for _, d := range j.Blocks {
		k := b.known[d]
		if k == nil || hit+blockTokens >= j.tokens() {
			break
		}
		hit += blockTokens
		if k.holders > 0 {
			need -= blockTokens
		}
	}
	if b.used+need > b.capacity && !alone {
		return 0, false
	}
	for _, d := range j.Blocks[:hit/blockTokens] {
		b.hold(d)
	}
	j.indexed = hit / blockTokens
	b.used += j.tokens() - hit
	b.evict()
	return hit, true
}

func (b *blocks) hold(digest uint64) {
	k := b.known[digest]
	if k.holders++; k.holders == 1 {
		b.idle.Remove(k.at)
		k.at = nil
		b.used += blockTokens
	}
}

// computed offers a job's blocks to others as far as they are computed.
func (b *blocks) computed(j *Job) {
	for j.indexed < len(j.Blocks) && (j.indexed+1)*blockTokens <= min(j.done, j.Prompt) {
		d := j.Blocks[j.indexed]
		if b.known[d] != nil {
			// Another has computed the same: what is one's own of it stays one's own.
			return
		}
		b.known[d] = &block{holders: 1}
		j.indexed++
	}
}

// release gives back all that a job holds. Its prefix stays, its end on top of
// what is evicted first.
func (b *blocks) release(j *Job) {
	b.used -= j.tokens() - j.indexed*blockTokens
	for i := j.indexed - 1; i >= 0; i-- {
		d := j.Blocks[i]
		k := b.known[d]
		if k.holders--; k.holders == 0 {
			b.used -= blockTokens
			k.at = b.idle.PushFront(d)
		}
	}
	j.indexed = 0
	b.evict()
}

// evict forgets idle blocks until all fits.
func (b *blocks) evict() {
	for b.idle.Len() > 0 && b.used+b.idle.Len()*blockTokens > b.capacity {
		last := b.idle.Back()
		b.evicted = append(b.evicted, last.Value.(uint64))
		delete(b.known, last.Value.(uint64))
		b.idle.Remove(last)
	}
}
