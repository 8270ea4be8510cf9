package weights

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Stamp says what the set was read from: of every file its name, size, place
// and time, and of every tensor its name, type, shape and place. It is the same
// while the files are; ok is false for files that are not on a disk.
func (s *Set) Stamp() (stamp string, ok bool) {
	h := sha256.New()
	for _, f := range s.files {
		if f.info == nil {
			return "", false
		}
		fmt.Fprintf(h, "%q %q %d %d\n", f.path, f.name, f.info.Size(), f.info.ModTime().UnixNano())
	}
	for _, name := range s.names {
		t := s.tensors[name]
		fmt.Fprintf(h, "%q %s %v %q %d %d\n", name, t.Type, t.Shape, t.file.name, t.begin, t.end)
	}
	return hex.EncodeToString(h.Sum(nil)), true
}
