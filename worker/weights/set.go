package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// indexName is the file that says which shard holds which tensor.
const indexName = "model.safetensors.index.json"

// maxIndex bounds the index file: a tensor of a name takes about 100 bytes.
const maxIndex = 256 << 20

// Set is all tensors of a model, from one file or from many.
type Set struct {
	files   []*file
	tensors map[string]*Tensor
	names   []string // sorted
}

// Open maps the weight files of a folder. It reads their headers and nothing
// else. Close unmaps them.
func Open(dir string) (*Set, error) {
	return open(os.DirFS(dir), func(name string) (*file, error) {
		return mapFile(filepath.Join(dir, name), name)
	})
}

// OpenFS reads the weight files at the root of fsys into memory.
func OpenFS(fsys fs.FS) (*Set, error) {
	return open(fsys, func(name string) (*file, error) { return readFile(fsys, name) })
}

func open(fsys fs.FS, load func(name string) (*file, error)) (set *Set, err error) {
	names, index, err := weightFiles(fsys)
	if err != nil {
		return nil, err
	}
	s := &Set{tensors: map[string]*Tensor{}}
	defer func() {
		if err != nil {
			_ = s.Close() // the reason why opening failed matters more
		}
	}()
	for _, name := range names {
		f, err := load(name)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, f)
		tensors, err := parseSafetensors(f)
		if err != nil {
			return nil, err
		}
		for _, t := range tensors {
			if other := s.tensors[t.Name]; other != nil {
				return nil, fmt.Errorf("tensor %q stands in %s and in %s", t.Name, other.file.name, name)
			}
			s.tensors[t.Name] = t
			s.names = append(s.names, t.Name)
		}
	}
	sort.Strings(s.names)
	if index != nil {
		if err := s.checkIndex(index); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// checkIndex holds the files to what the index says of them.
func (s *Set) checkIndex(index map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(index)) {
		shard, t := index[name], s.tensors[name]
		if t == nil {
			return fmt.Errorf("%s: tensor %q should be in %s, but is not", indexName, name, shard)
		}
		if t.file.name != shard {
			return fmt.Errorf("%s: tensor %q should be in %s, but is in %s", indexName, name, shard, t.file.name)
		}
	}
	return nil
}

// weightFiles finds the weight files of a folder: the shards of its index,
// else model.safetensors, else every *.safetensors.
func weightFiles(fsys fs.FS) (names []string, index map[string]string, err error) {
	data, err := ReadBounded(fsys, indexName, maxIndex)
	if err == nil {
		index, err = parseIndex(data)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", indexName, err)
		}
		for _, shard := range index {
			names = append(names, shard)
		}
		sort.Strings(names)
		return slices.Compact(names), index, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if _, err := fs.Stat(fsys, "model.safetensors"); err == nil {
		return []string{"model.safetensors"}, nil, nil
	}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the model's folder: %w", err)
	}
	pickled := ""
	for _, e := range entries {
		switch path.Ext(e.Name()) {
		case ".safetensors":
			names = append(names, e.Name())
		case ".bin", ".pt", ".pth", ".ckpt", ".pkl":
			pickled = e.Name()
		}
	}
	switch {
	case len(names) > 0:
		return names, nil, nil
	case pickled != "":
		return nil, nil, fmt.Errorf("%s is a pickle, which can run code when it is read and is never loaded; convert the model to safetensors", pickled)
	}
	return nil, nil, errors.New("no weights: the folder has no *.safetensors file")
}

// parseIndex reads the weight map of an index, tensor → shard.
func parseIndex(data []byte) (map[string]string, error) {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, err
	}
	if len(index.WeightMap) == 0 {
		return nil, errors.New("weight_map is missing or empty")
	}
	for _, name := range slices.Sorted(maps.Keys(index.WeightMap)) {
		shard := index.WeightMap[name]
		if shard == "" || strings.ContainsAny(shard, "/\\\x00") || !fs.ValidPath(shard) || path.Ext(shard) != ".safetensors" {
			return nil, fmt.Errorf("weight_map: tensor %q: %q is not the name of a *.safetensors file of this folder", name, shard)
		}
	}
	return index.WeightMap, nil
}

// ReadBounded reads a regular file of fsys that may have at most max bytes.
func ReadBounded(fsys fs.FS, name string, max int64) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(name, info.Mode())
	}
	if info.Size() > max {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", name, info.Size(), max)
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return data, nil
}

// Names lists the tensors in order.
func (s *Set) Names() []string { return s.names }

// Lookup finds a tensor by name; nil if there is none.
func (s *Set) Lookup(name string) *Tensor { return s.tensors[name] }

// Unchanged returns an error if a mapped file was replaced, cut or written to
// since it was opened. It is asked after the last tensor has been read.
func (s *Set) Unchanged() error {
	for _, f := range s.files {
		if err := f.unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// Close unmaps the files. Data of the set's tensors must not be used after.
func (s *Set) Close() error {
	var err error
	for _, f := range s.files {
		err = errors.Join(err, f.close())
	}
	return err
}
