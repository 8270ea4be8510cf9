package xpu

import (
	"fmt"
	"slices"

	"roundhouse/kernels/xpu/cl"
)

// builder builds modules when their first kernel is asked for: from what the driver
// made of them at an earlier start, from SPIR-V, or from source.
type builder struct {
	ctx      *cl.Context
	modules  []Module
	cache    string
	programs map[string]*cl.Program // by module
	from     []string               // how each was built, for tests and people: "sample: cache"

	compile func(m Module, il []byte) (p *cl.Program, from string, err error) // in tests; nil: as the driver can
}

// kernel finds a kernel by name and builds its module if need be.
func (b *builder) kernel(name string) (*cl.Kernel, error) {
	i := slices.IndexFunc(b.modules, func(m Module) bool { return slices.Contains(m.Kernels, name) })
	if i < 0 {
		panic(fmt.Sprintf("BUG: no module has the kernel %s", name))
	}
	m := b.modules[i]
	p := b.programs[m.Name]
	if p == nil {
		var err error
		if p, err = b.build(m); err != nil {
			return nil, fmt.Errorf("kernels %s: %w", m.Name, err)
		}
		b.programs[m.Name] = p
	}
	return p.Kernel(name)
}

// build makes a program of a module. SPIR-V that a driver does not take is no error:
// the source is there as well.
func (b *builder) build(m Module) (*cl.Program, error) {
	il := m.IL()
	m.Options = optionsOn(b.ctx.Device, m.Options)
	e := entryOf(b.cache, b.ctx.Device, m)
	if binary, ok := e.read(); ok {
		if p, err := b.ctx.BuildBinary(binary, m.Options); err == nil {
			b.from = append(b.from, m.Name+": cache")
			return p, nil
		}
	}
	compile := b.compile
	if compile == nil {
		compile = b.best
	}
	p, from, err := compile(m, il)
	if err != nil {
		return nil, err
	}
	b.from = append(b.from, m.Name+": "+from)
	if binary, err := p.Binary(); err == nil {
		e.write(binary)
	}
	return p, nil
}

// best compiles a module from SPIR-V where the build has it and the driver takes it,
// otherwise from source.
func (b *builder) best(m Module, il []byte) (p *cl.Program, from string, err error) {
	if p, err = b.ctx.BuildIL(il, m.Options); err == nil {
		return p, "SPIR-V", nil
	}
	p, err = b.ctx.Build(m.Text, m.Options)
	return p, "source", err
}

func (b *builder) release() {
	for _, p := range b.programs {
		p.Release()
	}
}
