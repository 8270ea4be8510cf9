package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// Format is the version of what this package writes.
const Format = 1

var (
	// ErrBusy is returned by Open when another supervisor has the journal.
	ErrBusy = errors.New("another supervisor has this state folder: end it first, or give this one a folder of its own (state_dir, or --state-dir)")
	// ErrNewer is returned by Open for a journal of a newer version.
	ErrNewer = errors.New("the journal was written by a newer version")
	// errDamaged is returned when a record or the file cannot be trusted.
	errDamaged = errors.New("damaged")
)

// The buckets.
const (
	Meta      = "meta"
	Workers   = "workers"
	Rotations = "rotations"
	Pools     = "pools"
	Specs     = "specs" // what a hash stands for
	events    = "events"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Journal is an open journal. Its methods may be called from one goroutine at
// a time, Events from any beside it.
type Journal struct {
	db *bolt.DB
	// SetAside names the damaged file that Open replaced; empty: none.
	SetAside string
	// Fault, where set, is asked before each write and again after it; its error
	// is the write's. Tests have a disk fill up or the program die there.
	Fault func(done bool) error
}

// Change writes or deletes one record.
type Change struct {
	Bucket, Key string
	Value       any // nil: delete
}

// Open opens the journal at path, or begins one.
func Open(path string) (*Journal, error) {
	j, err := open(path)
	if err == nil || errors.Is(err, ErrBusy) || errors.Is(err, ErrNewer) || errors.Is(err, os.ErrPermission) {
		return j, err
	}
	if _, statErr := os.Stat(path); statErr != nil || unreachable(err) {
		return nil, fmt.Errorf("cannot open the journal %s: %w", path, err)
	}
	aside := fmt.Sprintf("%s.damaged-%d", path, time.Now().UnixNano())
	if renameErr := os.Rename(path, aside); renameErr != nil {
		return nil, fmt.Errorf("the journal %s is damaged (%w) and cannot be set aside: %w", path, err, renameErr)
	}
	if j, err = open(path); err != nil {
		return nil, fmt.Errorf("cannot begin the journal %s: %w", path, err)
	}
	j.SetAside = aside
	return j, nil
}

// unreachable reports whether an error says that the system does not let a file be used
// now: too many are open, the disk takes no writes, memory is short. It says nothing of
// what the file holds.
func unreachable(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno != unix.EIO && errno != unix.EINVAL
}

func open(path string) (j *Journal, err error) {
	err = guard(func() error {
		db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: 300 * time.Millisecond, FreelistType: bolt.FreelistMapType})
		if errors.Is(err, bolterrors.ErrTimeout) {
			return ErrBusy
		}
		if err != nil {
			return err
		}
		j = &Journal{db: db}
		return j.check()
	})
	if err != nil && j != nil {
		_ = guard(j.db.Close) // the first error is the one to tell
	}
	return j, err
}

// check reads every record once and makes sure of the format.
func (j *Journal) check() error {
	var format int
	err := j.db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				data, err := unseal(v)
				if err != nil {
					return fmt.Errorf("%s/%s: %w", name, k, err)
				}
				if string(name) == Meta && string(k) == "format" {
					return json.Unmarshal(data, &format)
				}
				return nil
			})
		})
	})
	if err != nil {
		return err
	}
	if format > Format {
		return fmt.Errorf("%w: format %d, this program knows %d", ErrNewer, format, Format)
	}
	if format == Format {
		return nil
	}
	return j.Write([]Change{{Meta, "format", Format}})
}

// guard turns a panic, also that of a page of the file that is not there, into
// an error.
func guard(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	return f()
}

// seal puts a record's checksum before it.
func seal(data []byte) []byte {
	out := binary.BigEndian.AppendUint32(make([]byte, 0, len(data)+4), crc32.Checksum(data, castagnoli))
	return append(out, data...)
}

func unseal(v []byte) ([]byte, error) {
	if len(v) < 4 {
		return nil, fmt.Errorf("%w: a record of %d bytes", errDamaged, len(v))
	}
	data := v[4:]
	if got, want := crc32.Checksum(data, castagnoli), binary.BigEndian.Uint32(v); got != want {
		return nil, fmt.Errorf("%w: checksum %08x, %08x was written", errDamaged, got, want)
	}
	return data, nil
}

// Write makes all changes or none, and returns when they are on the disk.
func (j *Journal) Write(changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	return j.faulty(func() error {
		return j.db.Update(func(tx *bolt.Tx) error {
			for _, c := range changes {
				b, err := tx.CreateBucketIfNotExists([]byte(c.Bucket))
				if err != nil {
					return err
				}
				if c.Value == nil {
					err = b.Delete([]byte(c.Key))
				} else {
					var data []byte
					if data, err = json.Marshal(c.Value); err == nil {
						err = b.Put([]byte(c.Key), seal(data))
					}
				}
				if err != nil {
					return fmt.Errorf("%s/%s: %w", c.Bucket, c.Key, err)
				}
			}
			return nil
		})
	})
}

// faulty writes with what Fault says before and after.
func (j *Journal) faulty(write func() error) error {
	if j.Fault == nil {
		return guard(write)
	}
	if err := j.Fault(false); err != nil {
		return err
	}
	if err := guard(write); err != nil {
		return err
	}
	return j.Fault(true)
}

// Read calls f with every record of a bucket, in the order of their keys.
func (j *Journal) Read(bucket string, f func(key string, data []byte) error) error {
	return guard(func() error {
		return j.db.View(func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte(bucket))
			if b == nil {
				return nil
			}
			return b.ForEach(func(k, v []byte) error {
				data, err := unseal(v)
				if err != nil {
					return fmt.Errorf("%s/%s: %w", bucket, k, err)
				}
				return f(string(k), data)
			})
		})
	})
}

// Close closes the file and lets go of its lock.
func (j *Journal) Close() error { return guard(j.db.Close) }
