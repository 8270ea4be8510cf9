package worker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"roundhouse/kernels"
)

// Tower is what an engine sees with: programs that run one after the other, each
// on the rows of the one before.
type Tower struct {
	Slices func() []Slice // as they lie in the backend now; called between two steps
	Width  int            // columns of a row that a token stands for
	Budget int64          // bytes of rows that are kept

	// Beside: no token stands for a row; a sequence brings all rows of its one item
	// as frames of the step in which it begins.
	Beside bool
}

// Slice is one of a tower's programs.
type Slice struct {
	Exec    kernels.Executable
	Windows bool // its step's sequences are the windows of a Input; otherwise the item
	Fold    int  // rows of the slice before it that are one row of its own
	Aside   bool // its rows stand behind those of the last; the slice behind it reads what it has read
}

// Item is a picture of a prompt. Its tokens stand for its rows, one each.
type Item struct {
	Digest      [32]byte // who has the same has the same rows
	First       int      // of its tokens in the prompt
	Lines, Line int      // its rows

	// Input makes what the tower reads. It is called beside the engine, once, if
	// the rows are not there.
	Input func() (TowerInput, error)
}

// Count is the number of an item's rows.
func (i *Item) Count() int { return i.Lines * i.Line }

// TowerInput is an item as a tower reads it.
type TowerInput struct {
	Features []float32
	Axes     []int32 // (patches, 3)
	Cuts     []int32 // the patch behind each window
	Order    []int32 // which of the item's each row of the tower is; nil: in order
	Frames   int     // of the features, where they are no patches
}

// sight makes the rows of items. A request with items is scheduled when all of
// them are there; they stay until it ends, whatever becomes of its pages.
type sight struct {
	tower *Tower
	cache rowCache
	queue []*request // that wait for rows, in the order of arrival
	job   *look
}

// look is an item on its way through the tower.
type look struct {
	request *request
	item    *Item
	input   *TowerInput // nil: it is being made
	slice   int
	rows    []float32   // of the slices so far
	aside   [][]float32 // of those that stand behind the last's
	err     error
}

// awaits reports whether a request waits for rows; it is scheduled later then.
func (s *sight) awaits(r *request) bool {
	if len(r.Media) == 0 || r.rows != nil {
		return false
	}
	s.queue = append(s.queue, r)
	return true
}

// positions on three axes for every token of a prompt, and what is added to the
// index of the tokens behind it: a picture is as long as its longer side.
func positions(tokens int, items []Item) (places []int32, shift int) {
	next := int32(0)
	text := func(end int) {
		for len(places) < 3*end {
			places = append(places, next, next, next)
			next++
		}
	}
	for i := range items {
		it := &items[i]
		text(it.First)
		for n := range int32(it.Count()) {
			places = append(places, next, next+n/int32(it.Line), next+n%int32(it.Line))
		}
		next += int32(max(it.Lines, it.Line))
	}
	text(tokens)
	return places, int(next) - tokens
}

// checkItems refuses items that do not lie in their prompt one after the other.
func (s *sight) checkItems(r *Request) error {
	if len(r.Media) > 0 && s.tower == nil {
		return errors.New("this model sees nothing")
	}
	if s.tower != nil && s.tower.Beside {
		if len(r.Media) != 1 || r.Media[0].Count() < 1 {
			return fmt.Errorf("a prompt with %d sounds; this model writes down one", len(r.Media))
		}
		return nil
	}
	end := 0
	for i := range r.Media {
		it := &r.Media[i]
		if it.Lines < 1 || it.Line < 1 || it.First < end || it.First+it.Count() > len(r.Tokens) {
			return fmt.Errorf("item %d of the prompt has %d by %d rows from token %d on, of %d", i, it.Lines, it.Line, it.First, len(r.Tokens))
		}
		end = it.First + it.Count()
	}
	return nil
}

// look schedules the requests whose rows are there, and works on the oldest
// other for as long as two steps take. It reports whether it has worked.
func (s *sight) look(e *Engine) (worked bool, err error) {
	if s.tower == nil {
		return false, nil
	}
	began := time.Now()
	budget := 2 * e.timings.ended.Sub(e.timings.began)
	for {
		worked = s.letSee(e) || worked
		if s.job == nil || s.job.input == nil && s.job.err == nil {
			return worked, nil
		}
		worked = true
		if err := s.step(); err != nil {
			return true, err
		}
		if e.sched.Running() == 0 || time.Since(began) >= budget {
			return true, nil
		}
	}
}

// letSee schedules who has all rows, and begins with what the oldest lacks.
func (s *sight) letSee(e *Engine) (scheduled bool) {
	s.queue = slices.DeleteFunc(s.queue, func(r *request) bool {
		if _, alive := e.live[r]; !alive {
			return true
		}
		if !s.cache.hasAll(r.Media) {
			return false
		}
		r.rows = s.cache.pin(r.Media)
		for i := range r.Media {
			r.Media[i].Input = nil // what it holds of the picture is not needed again
		}
		e.schedule(r)
		scheduled = true
		return true
	})
	if j := s.job; j != nil {
		if _, alive := e.live[j.request]; alive {
			if j.err != nil {
				s.job = nil
				j.fail(e)
			}
			return scheduled
		}
		s.job = nil // nobody waits for it any more
	}
	if len(s.queue) > 0 {
		s.begin(e, s.queue[0])
	}
	return scheduled
}

// begin has the first item that a request lacks made ready, if there is room
// for its rows.
func (s *sight) begin(e *Engine, r *request) {
	for i := range r.Media {
		it := &r.Media[i]
		if s.cache.has(it.Digest) {
			continue
		}
		if !s.cache.room(r.Media, it.Count()*s.tower.Width) {
			return
		}
		j := &look{request: r, item: it}
		s.job = j
		go func() {
			view, err := seen(it)
			e.post(func() { j.input, j.err = view, err })
		}()
		return
	}
}

// seen makes an item's input; a panic in it is the request's.
func seen(it *Item) (v *TowerInput, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = kernels.Panicked(p)
		}
	}()
	view, err := it.Input()
	return &view, err
}

// fail ends the requests of an item that no rows can be made of.
func (j *look) fail(e *Engine) {
	for c, q := range j.request.choices {
		if q != nil {
			e.endWith(j.request, c, failure(q, j.err))
		}
	}
}

// step runs the next slice. The error is of a backend that computes no more.
func (s *sight) step() error {
	j, all := s.job, s.tower.Slices()
	if j.err != nil {
		return nil
	}
	slice, in := &all[j.slice], j.rows
	if j.slice == 0 {
		in = j.input.Features
	}
	var out kernels.Result
	if err := slice.Exec.Run(j.input.stepOf(slice, in, j.item.Count()), &out); err != nil {
		var failed *kernels.StepError
		if !errors.As(err, &failed) {
			return err
		}
		j.err = failed
		return nil
	}
	rows := slices.Concat(out.Output...)
	if slice.Aside {
		j.aside = append(j.aside, rows)
	} else {
		j.input.Features, j.rows = nil, rows
	}
	if j.slice++; j.slice == len(all) {
		s.finish()
	}
	return nil
}

// stepOf is a slice's step over the whole item, which has so many rows.
func (v *TowerInput) stepOf(s *Slice, in []float32, rows int) *kernels.Step {
	if v.Frames > 0 {
		return v.heard(in, rows)
	}
	n := len(v.Axes) / 3
	if s.Fold > 1 {
		n /= s.Fold
	}
	step := &kernels.Step{Tokens: make([]int32, n), Positions: make([]int32, n), Axes: v.Axes[:3*n], Features: in}
	ends := []int32{int32(n)}
	if s.Windows {
		ends = v.Cuts
	}
	first := int32(0)
	for _, end := range ends {
		step.Seqs = append(step.Seqs, kernels.Seq{First: first, Count: end - first, Context: end - first})
		first = end
	}
	return step
}

// heard is a slice's step over a sound, whose rows stand one after the other.
func (v *TowerInput) heard(in []float32, rows int) *kernels.Step {
	n := int32(rows)
	step := &kernels.Step{Tokens: make([]int32, rows), Positions: make([]int32, rows), Features: in,
		Seqs: []kernels.Seq{{Count: n, Context: n, Frames: int32(v.Frames)}}}
	for i := range step.Positions {
		step.Positions[i] = int32(i)
	}
	return step
}

// frames has a sequence that begins in a step bring the rows of its item.
func (s *sight) frames(step *kernels.Step, q *Sequence) {
	if s.tower == nil || !s.tower.Beside {
		return
	}
	step.Seqs[len(step.Seqs)-1].Frames = int32(q.request.Media[0].Count())
	step.Features = append(step.Features, q.request.rows[0].rows...)
}

// finish keeps the rows in the item's own order.
func (s *sight) finish() {
	j := s.job
	s.job = nil
	n, width := j.item.Count(), s.tower.Width
	rows := make([]float32, 0, n*width)
	places := make([]int, n) // where each row of the item is among the tower's
	for i := range places {
		places[i] = i
	}
	for i, at := range j.input.Order {
		places[at] = i
	}
	for _, at := range places {
		for _, part := range slices.Concat([][]float32{j.rows}, j.aside) {
			each := len(part) / n
			rows = append(rows, part[at*each:][:each]...)
		}
	}
	if len(rows) != n*width {
		panic(fmt.Sprintf("BUG: a tower made %d numbers of an item of %d rows", len(rows), n))
	}
	s.cache.put(j.item.Digest, rows)
}

// media fills in what the step has of a sequence's items: the rows that its
// tokens from start on stand for.
func (s *sight) media(step *kernels.Step, q *Sequence, start, count int) {
	r := q.request
	for i := range r.Media {
		it := &r.Media[i]
		from, to := max(start, it.First), min(start+count, it.First+it.Count())
		for p := from; p < to; p++ {
			at := len(step.MediaRow) - count + p - start
			step.MediaRow[at] = int32(len(step.Media) / s.tower.Width)
			step.Media = append(step.Media, r.rows[i].rows[(p-it.First)*s.tower.Width:][:s.tower.Width]...)
		}
	}
}
