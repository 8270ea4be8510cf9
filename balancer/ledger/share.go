package ledger

// cachedShare is what one worker has of a prefix table: the chunks in the order in
// which it got them, and how much it may have.
type cachedShare struct {
	most int // in ChunkBytes; 0: as much as the table holds
	has  int // in ChunkBytes
	ring []owned
	from int // of the ring, the oldest
}

// owned is one chunk of a worker, and when it was used by the time it was
// entered or last looked at.
type owned struct {
	digest uint64
	stamp  uint32
}

// Limit bounds how much a worker is believed to have, in ChunkBytes: what its KV
// cache holds, for it can cache no more.
func (t *PrefixTable) Limit(worker, units int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for worker >= len(t.shares) {
		t.shares = append(t.shares, cachedShare{})
	}
	s := &t.shares[worker]
	if s.most = max(units, 0); s.most == 0 {
		s.empty()
	}
}

// count enters a chunk that a worker did not have before. Where it has as much
// as it may, the oldest that were not used meanwhile go.
func (t *PrefixTable) count(worker int, digest uint64) {
	if worker >= len(t.shares) || t.shares[worker].most == 0 {
		return
	}
	s := &t.shares[worker]
	for range 32 {
		if len(s.ring) == s.from || s.has+unitsOf(digest) <= s.most {
			break
		}
		oldest := s.pop()
		at, ok := t.index[oldest.digest]
		if !ok || t.set(at)[worker/64]&(1<<(worker%64)) == 0 {
			continue // forgotten meanwhile
		}
		if now := t.slots[at].stamp; now != oldest.stamp && oldest.digest != digest {
			s.push(owned{oldest.digest, now}) // used since: it stands behind the others again
			continue
		}
		t.clear(worker, oldest.digest)
	}
	for len(s.ring) > s.from && s.has+unitsOf(digest) > s.most { // all that was looked at is in use
		t.clear(worker, s.pop().digest)
	}
	s.push(owned{digest, t.stamp})
}

func (s *cachedShare) empty() { s.ring, s.from, s.has = nil, 0, 0 }

func (s *cachedShare) push(o owned) {
	s.ring = append(s.ring, o)
	s.has += unitsOf(o.digest)
}

// pop takes the oldest chunk. The ring is moved to its beginning once half of
// it is empty.
func (s *cachedShare) pop() owned {
	o := s.ring[s.from]
	s.has -= unitsOf(o.digest)
	if s.from++; s.from*2 > len(s.ring) {
		s.ring = append(s.ring[:0], s.ring[s.from:]...)
		s.from = 0
	}
	return o
}

// Known is one chunk of a table and the workers that have it, as one door hands
// it over to the next.
type Known struct {
	Digest  uint64
	Workers []uint64 // a bit for each worker
}

// Export returns the chunks used most recently, at most limit, the oldest of
// them first.
func (t *PrefixTable) Export(limit int) []Known {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Known
	for at := t.head; at >= 0 && len(out) < limit; at = t.slots[at].next {
		out = append(out, Known{t.slots[at].digest, append([]uint64(nil), t.set(at)...)})
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}
