package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"

	"roundhouse/worker/gguf"
)

// OpenGGUF maps a GGUF file, and those that it goes on in, and returns its tensors,
// under the names that the file has, and its header. Close unmaps them.
func OpenGGUF(path string) (*Set, *gguf.File, error) {
	return openGGUF(filepath.Base(path), func(name string) (*file, error) {
		return mapFile(filepath.Join(filepath.Dir(path), name), name)
	})
}

// OpenGGUFFS is OpenGGUF for files of fsys, which are read into memory.
func OpenGGUFFS(fsys fs.FS, name string) (*Set, *gguf.File, error) {
	return openGGUF(name, func(name string) (*file, error) { return readFile(fsys, name) })
}

// openGGUF opens the file of that name. One that is the first of several is opened with
// the others, and its header then has the tensors of all.
func openGGUF(name string, load func(name string) (*file, error)) (set *Set, head *gguf.File, err error) {
	s := &Set{tensors: map[string]*Tensor{}}
	defer func() {
		if err != nil {
			_ = s.Close() // the reason why opening failed matters more
		}
	}()
	if head, err = s.addGGUF(name, load); err != nil {
		return nil, nil, err
	}
	names, err := partsOf(name, head)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, part := range names {
		if i == 0 {
			continue // the header that is read
		}
		more, err := s.addGGUF(part, load)
		if err == nil {
			err = follows(more, i, len(names))
		}
		if err != nil {
			return nil, nil, fmt.Errorf("part %d of %d: %w", i+1, len(names), err)
		}
		head.Tensors = append(head.Tensors, more.Tensors...)
	}
	if want, err := head.Int("split.tensors.count", len(head.Tensors)); err != nil || len(names) > 1 && want != len(head.Tensors) {
		return nil, nil, errors.Join(err, fmt.Errorf("%s: the %d parts have %d tensors; split.tensors.count is %d", name, len(names), len(head.Tensors), want))
	}
	sort.Strings(s.names)
	return s, head, nil
}

// addGGUF reads one file's header and takes its tensors.
func (s *Set) addGGUF(name string, load func(name string) (*file, error)) (*gguf.File, error) {
	f, err := load(name)
	if err != nil {
		return nil, err
	}
	s.files = append(s.files, f)
	head, err := parseGGUF(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	for _, t := range head.Tensors {
		if other := s.tensors[t.Name]; other != nil {
			return nil, fmt.Errorf("tensor %q stands in %s and in %s", t.Name, other.file.name, name)
		}
		s.tensors[t.Name] = &Tensor{Name: t.Name, Type: DType(t.Type.String()), Shape: t.Shape, file: f, begin: t.Begin, end: t.End}
		s.names = append(s.names, t.Name)
	}
	return head, nil
}

func parseGGUF(f *file) (head *gguf.File, err error) {
	parse := func() (err error) {
		head, err = gguf.Parse(f.data)
		return err
	}
	if !f.mapped {
		return head, parse()
	}
	if err = guarded(parse); errors.Is(err, errFault) {
		err = errors.New("the file was cut short while its header was being read")
	}
	return head, err
}

// mostParts bounds the files of one model: those who define the format count them in 16
// bits, and write five digits.
const mostParts = 1<<16 - 1

// partsOf are the names of all files of the model whose first file has that name.
func partsOf(name string, head *gguf.File) ([]string, error) {
	count, err := head.Int("split.count", 1)
	if err != nil || count <= 1 {
		return []string{name}, err
	}
	if count > mostParts {
		return nil, fmt.Errorf("split.count is %d; want at most %d", count, mostParts)
	}
	stem := fmt.Sprintf("-%05d-of-%05d.gguf", 1, count)
	if len(name) <= len(stem) {
		return nil, notFirst(count)
	}
	base := name[:len(name)-len(stem)]
	if no, err := head.Int("split.no", 0); err != nil || no != 0 || name != base+stem {
		return nil, errors.Join(err, notFirst(count))
	}
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%05d-of-%05d.gguf", base, i+1, count)
	}
	return names, nil
}

// filesOfGGUF are the names of the files of the model that begins in the file at path.
func filesOfGGUF(path string) ([]string, error) {
	name := filepath.Base(path)
	f, err := mapFile(path, name)
	if err != nil {
		return nil, err
	}
	defer f.close()
	head, err := parseGGUF(f)
	if err != nil {
		return []string{name}, nil // its checksum says more of a damaged file
	}
	return partsOf(name, head)
}

func notFirst(count int) error {
	return fmt.Errorf("this is one of %d files of a model; give the first, under its name NAME-00001-of-%05d.gguf, with the others beside it", count, count)
}

// follows holds the header of part i, counted from 0, to its place among count.
func follows(head *gguf.File, i, count int) error {
	no, err := head.Int("split.no", -1)
	if err != nil {
		return err
	}
	of, err := head.Int("split.count", -1)
	if err != nil {
		return err
	}
	if no != i || of != count {
		return fmt.Errorf("split.no is %d and split.count %d; want %d and %d: it is a part of another model", no, of, i, count)
	}
	return nil
}
