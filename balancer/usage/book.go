package usage

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/beat"
	"roundhouse/balancer/control"
)

const (
	writeEvery = time.Second // a door that is killed loses as much
	keepMonths = 13          // with the present one
	mostRows   = 50_000      // of a month; what is beyond is of model "other"
	dayForm    = "2006-01-02"
)

// at is what a sum is of.
type at struct{ day, key, model string }

func (a at) month() string { return a.day[:len("2006-01")] }

// Book counts. Its methods may be called from any goroutine.
type Book struct {
	log    *slog.Logger
	folder *folder    // nil: nothing is kept
	disk   sync.Mutex // held while the folder is read or written; taken before mu

	mu      sync.Mutex
	id      string // of the folder, or of this book
	zone    *time.Location
	day     string              // today
	next    time.Time           // when tomorrow begins
	last    at                  // what was counted last, and is not entered yet
	recent  control.Used        // of that
	rows    map[at]control.Used // as written: of this month, or of all where nothing is kept
	untold  map[at]control.Used // counted here, and not written yet
	going   map[at]control.Used // of these, what is being written
	sums    map[string]*sum     // by key, of rows and untold
	foreign foreign
	heard   bool  // more of foreign than the folder has
	fault   error // of the last write
}

// sum is what a key has used today and this month.
type sum struct{ day, month control.Used }

// Open makes the book of a folder; an empty path keeps nothing beyond the process.
func Open(dir string, now time.Time, log *slog.Logger) *Book {
	b := &Book{log: log, zone: time.UTC, rows: map[at]control.Used{}, untold: map[at]control.Used{}, sums: map[string]*sum{}, foreign: foreign{}, id: rand.Text()}
	if dir != "" {
		b.folder = &folder{dir: dir}
	}
	b.turn(now)
	b.Write(now)
	if b.folder != nil {
		told, err := b.folder.readForeign()
		if err != nil {
			log.Error(err.Error())
		}
		for _, t := range told {
			b.Hear(&t)
		}
	}
	return b
}

// SetZone says where days begin.
func (b *Book) SetZone(zone *time.Location, now time.Time) {
	b.lock()
	defer b.mu.Unlock()
	if zone.String() != b.zone.String() {
		b.zone, b.next = zone, time.Time{}
		b.turn(now)
	}
}

// turn begins a new day, if one has begun. b.mu is held.
func (b *Book) turn(now time.Time) {
	if now.Before(b.next) && !now.Before(b.next.Add(-48*time.Hour)) {
		return
	}
	local := now.In(b.zone)
	y, m, d := local.Date()
	b.day, b.next = local.Format(dayForm), time.Date(y, m, d+1, 0, 0, 0, 0, b.zone)
	oldest := time.Date(y, m-keepMonths+1, 1, 0, 0, 0, 0, b.zone).Format(dayForm)
	for a := range b.rows {
		if a.day < oldest || b.folder != nil && a.month() != b.day[:7] {
			delete(b.rows, a)
		}
	}
	b.sum()
}

// sum makes the keys' sums anew. b.mu is held.
func (b *Book) sum() {
	clear(b.sums)
	for _, rows := range []map[at]control.Used{b.rows, b.untold, b.going} {
		for a, u := range rows {
			b.enter(a, u)
		}
	}
}

// enter adds to the sums of a key. b.mu is held.
func (b *Book) enter(a at, u control.Used) {
	if a.month() != b.day[:7] {
		return
	}
	s := b.sums[a.key]
	if s == nil {
		s = &sum{}
		b.sums[a.key] = s
	}
	if s.month.Add(u); a.day == b.day {
		s.day.Add(u)
	}
}

// Count counts what a key has used of a model.
func (b *Book) Count(key, model string, u control.Used, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn(now)
	if a := (at{b.day, key, model}); a != b.last {
		b.settle()
		if _, known := b.rows[a]; !known && len(b.rows)+len(b.untold) >= mostRows {
			a.model = "other"
		}
		b.last = a
	}
	b.recent.Add(u)
}

// settle enters what was counted last. b.mu is held.
func (b *Book) settle() {
	if b.recent == (control.Used{}) {
		return
	}
	had := b.untold[b.last]
	had.Add(b.recent)
	b.untold[b.last] = had
	b.enter(b.last, b.recent)
	b.recent = control.Used{}
}

// lock locks the book with all entered that was counted.
func (b *Book) lock() {
	b.mu.Lock()
	b.settle()
}

// Of is what a key has used today and this month, at all doors that are heard of.
func (b *Book) Of(key string, now time.Time) (day, month control.Used) {
	b.lock()
	defer b.mu.Unlock()
	b.turn(now)
	return b.of(key)
}

func (b *Book) of(key string) (day, month control.Used) {
	if s := b.sums[key]; s != nil {
		day, month = s.day, s.month
	}
	for _, f := range b.foreign {
		for _, k := range f.Keys {
			if k.Name != key || f.Day[:7] != b.day[:7] {
				continue
			}
			if month.Add(k.Month); f.Day == b.day {
				day.Add(k.Day)
			}
		}
	}
	return day, month
}

// Told is what this book tells doors of other folders.
func (b *Book) Told(keys []string, now time.Time) *control.FolderUse {
	b.lock()
	defer b.mu.Unlock()
	b.turn(now)
	t := &control.FolderUse{Folder: b.id, Day: b.day}
	for _, name := range keys {
		if s := b.sums[name]; s != nil {
			t.Keys = append(t.Keys, control.BudgetUse{Name: name, Day: s.day, Month: s.month})
		}
	}
	return t
}

// Others is what doors of other folders have told of this month. A door that is new learns
// it from those that are there: who told it may be gone.
func (b *Book) Others(now time.Time) (list []control.FolderUse) {
	b.lock()
	defer b.mu.Unlock()
	b.turn(now)
	for _, folder := range slices.Sorted(maps.Keys(b.foreign)) {
		if t := b.foreign[folder]; t.Day[:7] == b.day[:7] {
			list = append(list, t)
		}
	}
	return list
}

// Hear takes what a door of another folder tells.
func (b *Book) Hear(t *control.FolderUse) {
	if t == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.Folder != b.id && b.foreign.hear(*t) {
		b.heard = true
	}
}

// Rows is what was used from one day to another, as far as it is kept.
func (b *Book) Rows(from, to string, now time.Time) control.Usage {
	b.Write(now)
	b.disk.Lock()
	defer b.disk.Unlock()
	b.lock()
	from, to = cmp.Or(from, b.day[:8]+"01"), cmp.Or(to, b.day)
	u := control.Usage{Schema: 1, Folder: b.id, Timezone: b.zone.String(), From: from, To: to, Rows: []control.UsageRow{}}
	all, month := map[at]control.Used{}, b.day[:7]
	for _, rows := range []map[at]control.Used{b.rows, b.untold} {
		add(all, rows)
	}
	b.mu.Unlock()
	if b.folder != nil {
		add(all, b.folder.older(b.log, from, to, month))
	}
	for a, used := range all {
		if a.day >= from && a.day <= to {
			u.Rows = append(u.Rows, control.UsageRow{Day: a.day, Key: a.key, Model: a.model, Used: used})
		}
	}
	control.SortUsage(u.Rows)
	return u
}

// add adds sums to sums.
func add(to, rows map[at]control.Used) {
	for a, u := range rows {
		had := to[a]
		had.Add(u)
		to[a] = had
	}
}

// Fault is why what was counted cannot be written; nil: it is.
func (b *Book) Fault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fault
}

// Write writes down what was counted and heard, and reads what other doors have. A fault
// is kept and told; what was counted waits in memory.
func (b *Book) Write(now time.Time) {
	b.disk.Lock()
	defer b.disk.Unlock()
	b.exchange(now)
	b.lock()
	all, heard, month := maps.Clone(b.foreign), b.heard, b.day[:7]
	b.heard = false
	b.mu.Unlock()
	if b.folder == nil || !heard {
		return
	}
	if err := b.folder.keepForeign(all, month); err != nil {
		b.lock()
		b.heard = true
		b.note(err)
		b.mu.Unlock()
	}
}

// exchange writes down what was counted here and reads what other doors of the folder
// have counted. b.disk is held.
func (b *Book) exchange(now time.Time) {
	b.lock()
	b.turn(now)
	if b.folder == nil {
		add(b.rows, b.untold)
		clear(b.untold)
		b.mu.Unlock()
		return
	}
	b.going, b.untold = b.untold, map[at]control.Used{}
	going, month, id := b.going, b.day[:7], b.id
	b.mu.Unlock()
	x, err := b.folder.exchange(month, going, id, now)
	b.lock()
	defer b.mu.Unlock()
	b.note(err)
	b.id, b.going = x.id, nil
	if x.fresh {
		clear(b.rows)
	}
	b.take(x.read)
	for _, rows := range x.written {
		b.take(rows)
		for a := range rows {
			delete(going, a)
		}
	}
	add(b.untold, going)
	if x.fresh || len(x.read) > 0 {
		b.sum()
	}
	if b.folder.damaged > 0 {
		b.log.Error("lines of a file of usage cannot be read, and are left out", "file", b.folder.path(month), "lines", b.folder.damaged)
		b.folder.damaged = 0
	}
}

// take enters rows that stand in the folder, if they are of this month. b.mu is held.
func (b *Book) take(rows map[at]control.Used) {
	for a, u := range rows {
		if a.month() == b.day[:7] {
			had := b.rows[a]
			had.Add(u)
			b.rows[a] = had
		}
	}
}

// Run writes once a second, and a last time when ctx has ended.
func (b *Book) Run(ctx context.Context) {
	beat.Run(ctx, writeEvery, func() { b.Write(time.Now()) })
	b.Write(time.Now())
}

// note keeps why what was counted could not be written. b.mu is held.
func (b *Book) note(err error) {
	if errors.Is(err, unix.EWOULDBLOCK) {
		return // another door writes; the next time will do
	}
	b.fault = err
}
