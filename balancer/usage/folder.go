package usage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/control"
	"roundhouse/configs/statefile"
)

const (
	suffix    = ".usage"
	syncEvery = 10 * time.Second
	// A file is written anew when it has so many lines more than four times its sums.
	spareLines = 5000
	longest    = 64 << 10 // of a line
)

// folder is where the months lie. It is used under Book.disk, and its files under their
// own lock, which other doors take too.
type folder struct {
	dir     string
	month   string   // that file is of
	file    *os.File // nil: not open
	read    int64    // what is known of it
	lines   int
	damaged int // lines that could not be read
	// condenseAt is the number of lines from which on it is looked at whether sums would
	// be shorter.
	condenseAt int
	synced     time.Time
	swept      string // the month in which old files were last removed
}

// line is one line of a file.
type line struct {
	Day    string `json:"d"`
	Key    string `json:"k"`
	Model  string `json:"m"`
	Count  int64  `json:"r"`
	In     int64  `json:"i"`
	Cached int64  `json:"c,omitempty"`
	Out    int64  `json:"o"`
}

// exchanged is how the exchange with a folder has gone.
type exchanged struct {
	id      string                // the folder's
	fresh   bool                  // the file was read from its beginning
	read    map[at]control.Used   // what others have appended
	written []map[at]control.Used // what of ours stands there now
}

// exchange reads what others have appended to a month's file, and appends what this door
// has counted, under the folder's lock.
func (f *folder) exchange(month string, going map[at]control.Used, id string, now time.Time) (x exchanged, err error) {
	x.id = id
	unlock, err := f.lock()
	if err != nil {
		return x, err
	}
	defer unlock()
	if x.id, err = f.identity(id); err != nil {
		return x, err
	}
	if x.fresh, err = f.open(month); err != nil {
		return x, err
	}
	if x.read, err = f.rest(); err != nil {
		f.close() // the next time it is read whole
		return x, err
	}
	for month, rows := range byMonth(going) {
		if err := f.append(month, rows); err != nil {
			return x, err
		}
		x.written = append(x.written, rows)
	}
	if now.Sub(f.synced) >= syncEvery {
		f.synced = now
		if err := f.file.Sync(); err != nil {
			return x, fmt.Errorf("usage: %w", err)
		}
	}
	return x, errors.Join(f.condense(), f.sweep(month))
}

// condense puts sums in place of the lines, where these have become many.
func (f *folder) condense() error {
	if f.lines < f.condenseAt {
		return nil
	}
	rows, lines, _, _, err := sumUp(io.NewSectionReader(f.file, 0, 1<<40))
	if err != nil {
		return fmt.Errorf("usage: %s: %w", f.file.Name(), err)
	}
	if f.condenseAt = 4*len(rows) + spareLines; lines < f.condenseAt {
		return nil
	}
	return f.rewrite(rows)
}

func byMonth(rows map[at]control.Used) map[string]map[at]control.Used {
	out := map[string]map[at]control.Used{}
	for a, u := range rows {
		if out[a.month()] == nil {
			out[a.month()] = map[at]control.Used{}
		}
		out[a.month()][a] = u
	}
	return out
}

// lock takes the folder's lock, if it is free.
func (f *folder) lock() (unlock func(), err error) {
	l, err := os.OpenFile(filepath.Join(f.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("usage: %w", err)
	}
	for try := 0; ; try++ {
		if err = unix.Flock(int(l.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return func() { l.Close() }, nil
		}
		if try == 20 || !errors.Is(err, unix.EWOULDBLOCK) {
			l.Close()
			return nil, fmt.Errorf("usage: %s: %w", l.Name(), err)
		}
		time.Sleep(time.Millisecond)
	}
}

// identity is the folder's name for other folders, which its first door gave it.
func (f *folder) identity(fresh string) (string, error) {
	path := filepath.Join(f.dir, "identity")
	switch text, err := os.ReadFile(path); {
	case err == nil && len(text) > 0 && len(text) <= 64:
		return string(text), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fresh, fmt.Errorf("usage: %w", err)
	}
	return fresh, os.WriteFile(path, []byte(fresh), 0o600)
}

func (f *folder) path(month string) string { return filepath.Join(f.dir, month+suffix) }

// open opens a month's file, unless it is open; fresh: what was known of it is not so.
func (f *folder) open(month string) (fresh bool, err error) {
	if f.file != nil {
		now, err := os.Stat(f.path(month))
		was, errWas := f.file.Stat()
		if err == nil && errWas == nil && os.SameFile(now, was) && now.Size() >= f.read {
			return false, nil
		}
		f.close() // another month, or written anew
	}
	file, err := os.OpenFile(f.path(month), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return true, fmt.Errorf("usage: %w", err)
	}
	f.file, f.month, f.read, f.lines, f.condenseAt = file, month, 0, 0, spareLines
	return true, nil
}

func (f *folder) close() {
	f.file.Close()
	f.file = nil
}

// rest reads from what is known of the file to its end. A last line that is cut is ended,
// for whoever wrote it is gone.
func (f *folder) rest() (map[at]control.Used, error) {
	rows, lines, damaged, n, err := sumUp(io.NewSectionReader(f.file, f.read, 1<<40))
	if err != nil {
		return nil, fmt.Errorf("usage: %s: %w", f.file.Name(), err)
	}
	f.read, f.lines, f.damaged = f.read+n, f.lines+lines, f.damaged+damaged
	var last [1]byte
	if f.read > 0 {
		if _, err := f.file.ReadAt(last[:], f.read-1); err != nil {
			return nil, fmt.Errorf("usage: %s: %w", f.file.Name(), err)
		}
		if last[0] != '\n' {
			if _, err := f.file.Write([]byte("\n")); err != nil {
				return nil, fmt.Errorf("usage: %w", err)
			}
			f.read++
		}
	}
	return rows, nil
}

// sumUp reads lines; n is the bytes that it has read.
func sumUp(r io.Reader) (rows map[at]control.Used, lines, damaged int, n int64, err error) {
	rows = map[at]control.Used{}
	in := bufio.NewReaderSize(r, longest)
	for {
		text, err := in.ReadSlice('\n')
		n += int64(len(text))
		if len(bytes.TrimSpace(text)) > 0 {
			var l line
			lines++
			if bad := json.Unmarshal(text, &l); bad != nil || !l.good() {
				damaged++
			} else {
				a := at{l.Day, l.Key, l.Model}
				had := rows[a]
				had.Add(control.Used{Requests: l.Count, TokensIn: l.In, TokensCached: l.Cached, TokensOut: l.Out})
				rows[a] = had
			}
		}
		if err == io.EOF {
			return rows, lines, damaged, n, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, 0, 0, 0, err
		}
	}
}

// good reports whether a line can be one of ours.
func (l *line) good() bool {
	_, err := time.Parse(dayForm, l.Day)
	return err == nil && min(l.Count, l.In, l.Cached, l.Out) >= 0
}

// text is sums as lines.
func text(rows map[at]control.Used) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	for a, u := range rows {
		if err := enc.Encode(line{a.day, a.key, a.model, u.Requests, u.TokensIn, u.TokensCached, u.TokensOut}); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	return out.Bytes()
}

// append writes sums behind a month's file. What was written in part is taken back, so
// that it does not count when it is written again.
func (f *folder) append(month string, rows map[at]control.Used) error {
	file := f.file
	if month != f.month {
		var err error
		if file, err = os.OpenFile(f.path(month), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		defer file.Close()
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	out := text(rows)
	if _, err := file.Write(out); err != nil {
		return fmt.Errorf("usage: %w", errors.Join(err, file.Truncate(info.Size())))
	}
	if month == f.month {
		f.read += int64(len(out))
		f.lines += len(rows)
	}
	return nil
}

// rewrite puts sums in place of the present month's lines.
func (f *folder) rewrite(rows map[at]control.Used) error {
	if err := replace(f.path(f.month), text(rows)); err != nil {
		return err
	}
	f.close() // it is opened anew, and read
	return nil
}

// replace puts a whole file in the place of another.
func replace(path string, text []byte) error {
	if err := statefile.Write(path, text); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	return nil
}

// sweep removes the files of months that are not kept any more, once a month.
func (f *folder) sweep(month string) error {
	if f.swept == month {
		return nil
	}
	f.swept = month
	at, err := time.Parse("2006-01", month)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	oldest := at.AddDate(0, -keepMonths+1, 0).Format("2006-01")
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	for _, e := range entries {
		of, is := strings.CutSuffix(e.Name(), suffix)
		if _, err := time.Parse("2006-01", of); is && err == nil && of < oldest || statefile.Abandoned(e) {
			if err := os.Remove(filepath.Join(f.dir, e.Name())); err != nil {
				return fmt.Errorf("usage: %w", err)
			}
		}
	}
	return nil
}

// older reads the months beside the present one, as far as they are asked for.
func (f *folder) older(log *slog.Logger, from, to, present string) map[at]control.Used {
	out := map[at]control.Used{}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		log.Error("usage cannot be read", "error", err.Error())
	}
	for _, e := range entries {
		month, is := strings.CutSuffix(e.Name(), suffix)
		if !is || len(month) != 7 || month == present || month < from[:7] || month > to[:7] {
			continue
		}
		file, err := os.Open(f.path(month))
		if err != nil {
			log.Error("usage cannot be read", "error", err.Error())
			continue
		}
		rows, _, damaged, _, err := sumUp(file)
		file.Close()
		if err != nil || damaged > 0 {
			log.Error("lines of a file of usage cannot be read, and are left out", "file", file.Name(), "lines", damaged)
		}
		add(out, rows)
	}
	return out
}
