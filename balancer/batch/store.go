package batch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/configs/statefile"
)

// errNotFound says that there is no such thing, or that it is somebody else's.
var errNotFound = errors.New("not found")

// errFull says that the folder holds as much as it may.
var errFull = errors.New("there is no room for more files")

// store is the folder.
type store struct {
	dir string
	now func() time.Time

	mu   sync.Mutex // held with the lock file, which goroutines of one program share
	lock *os.File
}

// openStore makes a folder ready.
func openStore(dir string, now func() time.Time) (*store, error) {
	for _, d := range []string{dir, filepath.Join(dir, "files"), filepath.Join(dir, "batches")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("batches: %w", err)
		}
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("batches: %w", err)
	}
	return &store{dir: dir, now: now, lock: lock}, nil
}

func (s *store) close() { s.lock.Close() }

// locked runs a change that no other goroutine or program makes meanwhile.
func (s *store) locked(change func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("the lock of %s: %w", s.dir, err)
	}
	defer unix.Flock(int(s.lock.Fd()), unix.LOCK_UN)
	return change()
}

func (s *store) meta(id string) string    { return filepath.Join(s.dir, "files", id+".json") }
func (s *store) content(id string) string { return filepath.Join(s.dir, "files", id+".data") }
func (s *store) batch(id string) string   { return filepath.Join(s.dir, "batches", id+".json") }

// write replaces a file of JSON as a whole.
func write(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return statefile.Write(path, text)
}

// read reads a file of JSON.
func read(path string, into any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errNotFound
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// used is how many bytes the files of the folder have.
func (s *store) used() (int64, error) {
	list, err := os.ReadDir(filepath.Join(s.dir, "files"))
	sum := int64(0)
	for _, e := range list {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum, err
}

// save keeps a new file of at most limit bytes.
func (s *store) save(f storedFile, content io.Reader, limit int64) (storedFile, error) {
	out, err := os.OpenFile(s.content(f.ID), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return f, err
	}
	f.Bytes, err = io.Copy(out, io.LimitReader(content, limit+1))
	if err == nil && f.Bytes > limit {
		err = errFull
	}
	err = errors.Join(err, out.Sync(), out.Close())
	if err == nil {
		err = s.locked(func() error { return write(s.meta(f.ID), f) })
	}
	if err != nil {
		os.Remove(s.content(f.ID))
	}
	return f, err
}

// file returns an owner's file.
func (s *store) file(owner, id string) (storedFile, error) {
	var f storedFile
	if !plain(id) {
		return f, errNotFound
	}
	if err := read(s.meta(id), &f); err != nil {
		return f, err
	}
	if f.Owner != owner || f.ExpiresAt != nil && *f.ExpiresAt <= s.now().Unix() {
		return f, errNotFound
	}
	return f, nil
}

// remove forgets an owner's file.
func (s *store) remove(owner, id string) error {
	return s.locked(func() error {
		if _, err := s.file(owner, id); err != nil {
			return err
		}
		return errors.Join(os.Remove(s.meta(id)), os.Remove(s.content(id)))
	})
}

// files lists an owner's files, the oldest first.
func (s *store) files(owner string) ([]storedFile, error) {
	all, err := list[storedFile](filepath.Join(s.dir, "files"))
	now := s.now().Unix()
	all = slices.DeleteFunc(all, func(f storedFile) bool { return f.Owner != owner || f.ExpiresAt != nil && *f.ExpiresAt <= now })
	slices.SortFunc(all, func(a, b storedFile) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// all lists the batches of all owners, the oldest first.
func (s *store) all() ([]storedBatch, error) {
	all, err := list[storedBatch](filepath.Join(s.dir, "batches"))
	slices.SortFunc(all, func(a, b storedBatch) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// list reads what a folder holds. What was removed meanwhile is left out.
func list[T any](dir string) ([]T, error) {
	names, err := os.ReadDir(dir)
	var out []T
	for _, e := range names {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		var v T
		switch err := read(filepath.Join(dir, e.Name()), &v); {
		case errors.Is(err, errNotFound):
		case err != nil:
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		default:
			out = append(out, v)
		}
	}
	return out, err
}

// one returns an owner's batch.
func (s *store) one(owner, id string) (storedBatch, error) {
	var b storedBatch
	if !plain(id) {
		return b, errNotFound
	}
	if err := read(s.batch(id), &b); err != nil {
		return b, err
	}
	if b.Owner != owner {
		return b, errNotFound
	}
	return b, nil
}

// update changes a batch under the lock.
func (s *store) update(id string, change func(b *storedBatch) error) (storedBatch, error) {
	var b storedBatch
	err := s.locked(func() error {
		if err := read(s.batch(id), &b); err != nil {
			return err
		}
		if err := change(&b); err != nil {
			return err
		}
		return write(s.batch(id), b)
	})
	return b, err
}

// sweep removes files whose time is over, what an upload that broke off left behind,
// and batches that ended longer ago than keep.
func (s *store) sweep(keep time.Duration) error {
	return s.locked(func() error {
		now := s.now()
		all, err := list[storedFile](filepath.Join(s.dir, "files"))
		if err != nil {
			return err
		}
		for _, f := range all {
			if f.ExpiresAt != nil && *f.ExpiresAt <= now.Unix() {
				err = errors.Join(err, os.Remove(s.meta(f.ID)), os.Remove(s.content(f.ID)))
			}
		}
		batches, failure := s.all()
		if err = errors.Join(err, failure); failure != nil {
			return err
		}
		wanted := map[string]bool{}
		for _, b := range batches {
			if b.over() && now.Sub(time.Unix(b.CreatedAt, 0)) > keep {
				err = errors.Join(err, os.Remove(s.batch(b.ID)))
				continue
			}
			wanted[b.Output], wanted[b.Failures] = !b.over(), !b.over()
		}
		return errors.Join(err, s.sweepContents(now, wanted))
	})
}

// sweepContents removes contents that belong to nothing for a day.
func (s *store) sweepContents(now time.Time, wanted map[string]bool) error {
	names, err := os.ReadDir(filepath.Join(s.dir, "files"))
	for _, e := range names {
		id, isContent := strings.CutSuffix(e.Name(), ".data")
		if !isContent && !statefile.Abandoned(e) || wanted[id] {
			continue
		}
		info, failure := e.Info()
		if failure != nil || now.Sub(info.ModTime()) < 24*time.Hour {
			continue
		}
		if _, failure := os.Stat(s.meta(id)); isContent && failure == nil {
			continue
		}
		err = errors.Join(err, os.Remove(filepath.Join(s.dir, "files", e.Name())))
	}
	return err
}

// plain reports whether s may stand as an id, and so as a file's name.
func plain(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}
