package lora

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"roundhouse/worker/weights"
)

// The files of an adapter's folder.
const (
	configName  = "adapter_config.json"
	weightsName = "adapter_model.safetensors"
	pickleName  = "adapter_model.bin"
)

// maxConfig bounds adapter_config.json, and maxWeights the file beside it.
const (
	maxConfig  = 1 << 20
	maxWeights = 16 << 30
)

// Adapter is an adapter as its folder has it.
type Adapter struct {
	Base    string   // the model that it was trained on, as the file says
	Modules []Module // by name
	set     *weights.Set
}

// Module is the correction of one linear.
type Module struct {
	Name   string // of the linear in the model: "model.layers.0.self_attn.q_proj"
	A, B   *weights.Tensor
	Factor float32
}

// Rank is the adapter's greatest.
func (a *Adapter) Rank() int {
	most := 0
	for _, m := range a.Modules {
		most = max(most, m.A.Shape[0])
	}
	return most
}

// Open reads the adapter at the root of fsys into memory.
func Open(fsys fs.FS) (*Adapter, error) {
	data, err := weights.ReadBounded(fsys, configName, maxConfig)
	if err != nil {
		return nil, err
	}
	var c config
	if err := c.parse(data); err != nil {
		return nil, err
	}
	info, err := fs.Stat(fsys, weightsName)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := fs.Stat(fsys, pickleName); err == nil {
			return nil, fmt.Errorf("%s is a pickle, which can run code when it is read and is never loaded; save the adapter as %s", pickleName, weightsName)
		}
	}
	if err == nil && info.Size() > maxWeights {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", weightsName, info.Size(), int64(maxWeights))
	}
	set, err := weights.OpenOne(fsys, weightsName)
	if err != nil {
		return nil, err
	}
	a := &Adapter{Base: c.Base, set: set}
	if a.Modules, err = modules(set, &c); err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return a, nil
}

// Close gives the memory back.
func (a *Adapter) Close() error { return a.set.Close() }

// Before and behind the name of a linear in the names of its tensors.
const (
	before  = "base_model.model."
	behindA = ".lora_A.weight"
	behindB = ".lora_B.weight"
)

// modules pairs the tensors of a file.
func modules(set *weights.Set, c *config) ([]Module, error) {
	all := map[string]*Module{}
	of := func(tensor, behind string) (*Module, bool) {
		name, ok := strings.CutSuffix(strings.TrimPrefix(tensor, before), behind)
		if ok && all[name] == nil {
			all[name] = &Module{Name: name}
		}
		return all[name], ok
	}
	for _, name := range set.Names() {
		t := set.Lookup(name)
		if m, ok := of(name, behindA); ok {
			m.A = t
		} else if m, ok := of(name, behindB); ok {
			m.B = t
		} else {
			return nil, fmt.Errorf("%s: %s is not supported; want tensors %s…%s and …%s alone", weightsName, name, before, behindA, behindB)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no tensors", weightsName)
	}
	var list []Module
	for _, m := range all {
		if err := m.complete(c); err != nil {
			return nil, err
		}
		list = append(list, *m)
	}
	slices.SortFunc(list, func(a, b Module) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// complete checks a pair of tensors and fills in their factor.
func (m *Module) complete(c *config) error {
	for behind, t := range map[string]*weights.Tensor{behindA: m.A, behindB: m.B} {
		switch {
		case t == nil:
			return fmt.Errorf("%s: %s%s%s is missing", weightsName, before, m.Name, behind)
		case len(t.Shape) != 2:
			return fmt.Errorf("%s: %s has shape %v; want two dimensions", weightsName, t.Name, t.Shape)
		case t.Type != weights.F32 && t.Type != weights.F16 && t.Type != weights.BF16:
			return fmt.Errorf("%s: %s is stored as %s; want F32, F16 or BF16", weightsName, t.Name, t.Type)
		}
	}
	rank, factor, err := c.of(m.Name)
	if err != nil {
		return err
	}
	if m.A.Shape[0] != rank || m.B.Shape[1] != rank {
		return fmt.Errorf("%s: %s has an A of %v and a B of %v; %s gives it rank %d", weightsName, m.Name, m.A.Shape, m.B.Shape, configName, rank)
	}
	m.Factor = factor
	return nil
}
