package history

import "math"

// blockPoints is how many points lie in one block, which goes as a whole.
const blockPoints = 120

// resolution is one series at one distance of points.
type resolution struct {
	first  int64 // the index of the first point of blocks[0]
	next   int64 // the index of the next point
	blocks []block
}

// block is the points of a while: all the same, or each its own.
type block struct {
	same   code
	n      int
	points []code // nil: n times same
}

func (b *block) add(c code) {
	switch {
	case b.n == 0:
		b.same = c
	case b.points == nil && c != b.same:
		b.points = make([]code, b.n, blockPoints)
		for i := range b.points {
			b.points[i] = b.same
		}
		fallthrough
	case b.points != nil:
		b.points = append(b.points, c)
	}
	b.n++
}

func (b *block) at(i int) code {
	if b.points == nil {
		return b.same
	}
	return b.points[i]
}

// size is about what a block holds of memory.
func (b *block) size() int { return 48 + 2*cap(b.points) }

// put adds the point of an index; what was left out before it is unknown. It returns by
// how much the resolution has grown.
func (l *resolution) put(index int64, c code, keep int64) (grown int) {
	if len(l.blocks) == 0 {
		l.first, l.next = index, index
	}
	if index-l.next > keep { // it was away for longer than anything is kept
		for i := range l.blocks {
			grown -= l.blocks[i].size()
		}
		l.blocks, l.first, l.next = nil, index, index
	}
	for l.next <= index {
		if n := len(l.blocks); n == 0 || l.blocks[n-1].n == blockPoints {
			l.blocks = append(l.blocks, block{})
			grown += l.blocks[n].size()
		}
		last := &l.blocks[len(l.blocks)-1]
		was := last.size()
		if l.next == index {
			last.add(c)
		} else {
			last.add(unknown)
		}
		grown += last.size() - was
		l.next++
	}
	return grown + l.trim(keep)
}

// trim drops the blocks that lie whole before what is kept.
func (l *resolution) trim(keep int64) (grown int) {
	drop := 0
	for drop < len(l.blocks)-1 && l.first+blockPoints <= l.next-keep {
		grown -= l.blocks[drop].size()
		l.first += blockPoints
		drop++
	}
	if drop > 0 {
		l.blocks = append([]block(nil), l.blocks[drop:]...)
	}
	return grown
}

// at is the point of an index; unknown where there is none.
func (l *resolution) at(index int64) code {
	if len(l.blocks) == 0 || index < l.first || index >= l.next {
		return unknown
	}
	i := index - l.first
	return l.blocks[i/blockPoints].at(int(i % blockPoints))
}

// mean is the mean of what is known of the points from an index on.
func (l *resolution) mean(from, n int64) float64 {
	sum, known := 0.0, 0
	for i := from; i < from+n; i++ {
		if v := l.at(i).decode(); !math.IsNaN(v) {
			sum += v
			known++
		}
	}
	if known == 0 {
		return math.NaN()
	}
	return sum / float64(known)
}

// series is one figure over time.
type series struct {
	fine, coarse resolution
	minute       int64 // of which the parts are gathered
	sum          float64
	known        int
}

// add takes the figure of one step. The mean of a minute's becomes a point of the coarse
// resolution once the minute is over.
func (s *series) add(index int64, v float64, keep kept) (grown int) {
	grown = s.fine.put(index, encode(v), keep.fine)
	minute := index / perMinute
	if minute != s.minute {
		if s.minute != 0 {
			mean := math.NaN()
			if s.known > 0 {
				mean = s.sum / float64(s.known)
			}
			grown += s.coarse.put(s.minute, encode(mean), keep.coarse)
		}
		s.minute, s.sum, s.known = minute, 0, 0
	}
	if !math.IsNaN(v) {
		s.sum += v
		s.known++
	}
	return grown
}

func (s *series) size() (n int) {
	for _, l := range []*resolution{&s.fine, &s.coarse} {
		for i := range l.blocks {
			n += l.blocks[i].size()
		}
	}
	return n
}
