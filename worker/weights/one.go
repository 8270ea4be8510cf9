package weights

import "io/fs"

// OpenOne reads one weight file of fsys into memory, whatever others lie beside
// it: an adapter's, which has a name of its own.
func OpenOne(fsys fs.FS, name string) (*Set, error) {
	f, err := readFile(fsys, name)
	if err != nil {
		return nil, err
	}
	tensors, err := parseSafetensors(f)
	if err != nil {
		return nil, err
	}
	s := &Set{files: []*file{f}, tensors: map[string]*Tensor{}}
	for _, t := range tensors {
		s.tensors[t.Name] = t
		s.names = append(s.names, t.Name)
	}
	return s, nil
}
