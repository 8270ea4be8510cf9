package keyfile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"roundhouse/configs"
	"roundhouse/configs/statefile"
)

// Name is the file's, in the state folder.
const Name = "keys.json"

// mostKeys bounds the keys that are made at run time.
const mostKeys = 10_000

// Made is a key that was made at run time. What opens it is kept as hashes alone.
type Made struct {
	configs.Key
	Created time.Time `json:"created"`
	By      string    `json:"by,omitempty"`
}

// Store is the file. Its methods may be called from any goroutine.
type Store struct {
	path string

	mu    sync.Mutex
	made  []Made
	asked bool
	fault error
}

// form is what the file holds.
type form struct {
	Schema int             `json:"schema"` // 1
	SHA256 string          `json:"sha256"` // of the keys as they stand here
	Keys   json.RawMessage `json:"keys"`
}

var (
	// ErrThere refuses a name or a key that there is.
	ErrThere = errors.New("there is such a key")
	// ErrUnknown refuses a name that nobody has.
	ErrUnknown = errors.New("there is no such key")
	// ErrInvalid refuses a key that says what none can.
	ErrInvalid = errors.New("this can be no key")
)

// Open reads the keys of a state folder; an empty path keeps none. A file that cannot be
// read is set aside under a name of its own, which Fault tells. From the first key on,
// clients need one, whatever becomes of it: a key's end must not open the door.
func Open(dir string) *Store {
	if dir == "" {
		return &Store{}
	}
	s := &Store{path: filepath.Join(dir, Name)}
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s
	}
	s.asked = true
	if err != nil {
		s.fault = fmt.Errorf("the keys made at run time cannot be read: %w", err)
		return s
	}
	if s.made, err = decode(text); err == nil {
		return s
	}
	s.made = nil
	aside := fmt.Sprintf("%s.damaged-%d", s.path, time.Now().UnixNano())
	s.fault = fmt.Errorf("%s is damaged (%w) and set aside as %s: put a copy of before in its place and start anew, or make its keys again", s.path, err, aside)
	if err := errors.Join(os.Link(s.path, aside), s.write(nil)); err != nil {
		s.fault = fmt.Errorf("%s is damaged, and cannot be set aside: %w", s.path, err)
	}
	return s
}

func decode(text []byte) ([]Made, error) {
	var f form
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	if f.Schema != 1 {
		return nil, fmt.Errorf("schema %d; this program knows 1", f.Schema)
	}
	if sum := sha256.Sum256(f.Keys); hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, errors.New("its checksum is another")
	}
	var made []Made
	if err := json.Unmarshal(f.Keys, &made); err != nil {
		return nil, err
	}
	for i := range made {
		if fault := made[i].Fault(); fault != "" {
			return nil, fmt.Errorf("key %q: %s", made[i].Name, fault)
		}
	}
	return made, nil
}

// write puts keys in place of the file's. s.mu is held, or nobody else has s.
func (s *Store) write(made []Made) error {
	if made == nil {
		made = []Made{}
	}
	keys, err := json.Marshal(made)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(keys)
	text, err := json.Marshal(form{1, hex.EncodeToString(sum[:]), keys})
	if err != nil {
		return err
	}
	if err := statefile.Write(s.path, append(text, '\n')); err != nil {
		return err
	}
	if d, err := os.Open(filepath.Dir(s.path)); err == nil { // a revoked key must not come back with the power
		_ = d.Sync()
		d.Close()
	}
	return nil
}

// Asked reports whether clients need a key because of the file.
func (s *Store) Asked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Fault is what is wrong with the file; nil: nothing.
func (s *Store) Fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// List is the keys, in the order they were made.
func (s *Store) List() []Made {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.made)
}

// Keys are those that hold beside the configuration's: whose name it does not have.
func (s *Store) Keys(configured []configs.Key) []configs.Key {
	taken := map[string]bool{}
	for _, k := range configured {
		taken[k.Name] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []configs.Key
	for _, k := range s.made {
		if !taken[k.Name] {
			out = append(out, k.Key)
		}
	}
	return out
}

// Add keeps a key. first tells that the file held none before.
func (s *Store) Add(k Made, configured []configs.Key) (first bool, err error) {
	if fault := k.Fault(); fault != "" {
		return false, fmt.Errorf("%w: %s", ErrInvalid, fault)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.path == "":
		return false, errors.New("there is no state folder to keep keys in: start with --state-dir")
	case len(s.made) >= mostKeys:
		return false, fmt.Errorf("there are %d keys made at run time already: remove some", mostKeys)
	}
	all := slices.Clone(configured)
	for _, m := range s.made {
		all = append(all, m.Key)
	}
	for _, old := range all {
		if old.Name == k.Name {
			return false, fmt.Errorf("%w: %q; choose another name, or remove it first", ErrThere, k.Name)
		}
		for _, sum := range k.SHA256 {
			if slices.ContainsFunc(old.SHA256, func(s string) bool { return strings.EqualFold(s, sum) }) {
				return false, fmt.Errorf("%w: it is that of %q; one client would be two", ErrThere, old.Name)
			}
		}
	}
	next := append(slices.Clone(s.made), k)
	if err := s.write(next); err != nil {
		return false, fmt.Errorf("the key is not kept: %w", err)
	}
	first = !s.asked
	s.made, s.asked = next, true
	return first, nil
}

// Remove forgets a key.
func (s *Store) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(s.made), func(k Made) bool { return k.Name == name })
	if len(next) == len(s.made) {
		return fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	if err := s.write(next); err != nil {
		return fmt.Errorf("the key is not removed: %w", err)
	}
	s.made = next
	return nil
}

// NewKey returns 160 random bits, in letters that survive being read aloud.
// The "sk-" is what clients expect of a key.
func NewKey() (key, sum string) {
	var bits [20]byte
	_, _ = rand.Read(bits[:]) // ends the program rather than fail
	key = "sk-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(bits[:]))
	digits := sha256.Sum256([]byte(key))
	return key, hex.EncodeToString(digits[:])
}
