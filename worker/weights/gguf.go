package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"

	"roundhouse/worker/gguf"
)

// OpenGGUF maps a GGUF file and returns its tensors, under the names that the
// file has, and its header. Close unmaps it.
func OpenGGUF(path string) (*Set, *gguf.File, error) {
	f, err := mapFile(path, filepath.Base(path))
	if err != nil {
		return nil, nil, err
	}
	return openGGUF(f)
}

// OpenGGUFFS is OpenGGUF for a file of fsys, which is read into memory.
func OpenGGUFFS(fsys fs.FS, name string) (*Set, *gguf.File, error) {
	f, err := readFile(fsys, name)
	if err != nil {
		return nil, nil, err
	}
	return openGGUF(f)
}

func openGGUF(f *file) (*Set, *gguf.File, error) {
	var head *gguf.File
	parse := func() (err error) {
		head, err = gguf.Parse(f.data)
		return err
	}
	var err error
	if f.mapped {
		err = guarded(parse)
	} else {
		err = parse()
	}
	if errors.Is(err, errFault) {
		err = errors.New("the file was cut short while its header was being read")
	}
	s := &Set{files: []*file{f}, tensors: map[string]*Tensor{}}
	if err != nil {
		_ = s.Close() // the reason why opening failed matters more
		return nil, nil, fmt.Errorf("%s: %w", f.name, err)
	}
	for _, t := range head.Tensors {
		s.tensors[t.Name] = &Tensor{Name: t.Name, Type: DType(t.Type.String()), Shape: t.Shape, file: f, begin: t.Begin, end: t.End}
		s.names = append(s.names, t.Name)
	}
	sort.Strings(s.names)
	return s, head, nil
}
