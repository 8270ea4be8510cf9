//go:build pocl || intel

package cl

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// Linked builds SPIR-V, or source where there is none, that leaves functions open,
// together with OpenCL C that has them. Tests run kernels of a GPU's instructions by it
// on devices that lack them.
func (c *Context) Linked(il []byte, source, options, functions string) (*Program, error) {
	handle, err := purego.Dlopen("libOpenCL.so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrNoLibrary, err)
	}
	var compile func(program uintptr, n uint32, devices *uintptr, options string, headers uint32, programs, names, notify, user uintptr) int32
	var link func(context uintptr, n uint32, devices *uintptr, options string, programs uint32, all *uintptr, notify, user uintptr, code *int32) uintptr
	purego.RegisterLibFunc(&compile, handle, "clCompileProgram")
	purego.RegisterLibFunc(&link, handle, "clLinkProgram")

	var parts [2]uintptr
	for i, text := range []string{source, functions} {
		if i == 0 && il != nil {
			parts[i], err = c.fromIL(il)
		} else {
			parts[i], err = c.fromSource(text)
		}
		if err != nil {
			return nil, err
		}
		defer c.lib.releaseProgram(parts[i])
		if err := check("clCompileProgram", compile(parts[i], 1, &c.Device.id, options, 0, 0, 0, 0, 0)); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, c.log(parts[i]))
		}
	}
	var code int32
	linked := link(c.handle, 1, &c.Device.id, "", 2, &parts[0], 0, 0, &code)
	if err := check("clLinkProgram", code); err != nil {
		if linked != 0 {
			defer c.lib.releaseProgram(linked)
			err = fmt.Errorf("%w\n%s", err, c.log(linked))
		}
		return nil, err
	}
	return &Program{c, linked}, nil
}
