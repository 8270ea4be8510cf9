package native

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoCompiler is returned by Find where ocloc is not installed.
var ErrNoCompiler = errors.New("ocloc is not there; on Debian the package intel-opencl-icd has it")

// Compiler is an installed ocloc.
type Compiler struct {
	path string
	dir  string // of its files
}

// Find looks for ocloc; what it makes goes to dir.
func Find(dir string) (*Compiler, error) {
	path, err := exec.LookPath("ocloc")
	if err != nil {
		return nil, ErrNoCompiler
	}
	return &Compiler{path, dir}, nil
}

// Knows reports whether this ocloc compiles for a device; older ones know fewer.
func (c *Compiler) Knows(device string) bool {
	help, _ := exec.Command(c.path, "compile", "--help").CombinedOutput() // it may call that a failure
	for _, word := range strings.FieldsFunc(string(help), func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", r) }) {
		if word == device {
			return true
		}
	}
	return false
}

// Binary is one module compiled for one device.
type Binary struct {
	Path    string
	Device  string
	Kernels []Kernel
}

// Build compiles a module for a device. Registers that are spilled are an error.
func (c *Compiler) Build(name, text, options, device string) (*Binary, error) {
	out, err := c.compile(name, text, device, device+".bin", "-options", options, "-internal_options", "-cl-intel-allow-zebin")
	if err != nil {
		return nil, err
	}
	b := &Binary{Path: out, Device: device}
	if b.Kernels, err = readKernels(out); err != nil {
		return nil, fmt.Errorf("%s for %s: %w", name, device, err)
	}
	return b, nil
}

// SPIRV compiles a module to SPIR-V, which any of Intel's drivers takes. The device
// decides nothing but which built-ins there are.
func (c *Compiler) SPIRV(name, text, options, device string) ([]byte, error) {
	out, err := c.compile(name, text, device, ".spv", "-options", options, "-spv_only")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// FromSPIRV compiles SPIR-V for a device, as a driver would.
func (c *Compiler) FromSPIRV(name string, il []byte, options, device string) (*Binary, error) {
	out, err := c.compile(name+"-il", string(il), device, device+".bin", "-spirv_input", "-options", options, "-internal_options", "-cl-intel-allow-zebin")
	if err != nil {
		return nil, err
	}
	b := &Binary{Path: out, Device: device}
	b.Kernels, err = readKernels(out)
	return b, err
}

// compile runs ocloc and returns the one file that it made.
func (c *Compiler) compile(name, text, device, suffix string, flags ...string) (string, error) {
	dir, err := os.MkdirTemp(c.dir, name+"-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, name+".cl")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return "", err
	}
	made := filepath.Join(dir, "made")
	args := append([]string{"compile", "-file", file, "-device", device, "-out_dir", made}, flags...)
	log, err := exec.Command(c.path, args...).CombinedOutput()
	if err == nil && bytes.Contains(log, []byte("spilled")) {
		err = errors.New("a kernel spills registers")
	}
	if err != nil {
		return "", fmt.Errorf("ocloc, %s for %s: %w\n%s", name, device, err, strings.TrimSpace(string(log)))
	}
	pattern := "*.bin"
	if suffix == ".spv" {
		pattern = "*.spv"
	}
	found, err := filepath.Glob(filepath.Join(made, pattern))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("ocloc, %s for %s: it left %v", name, device, found)
	}
	return found[0], nil
}

// Disassemble returns the assembly of a binary's kernels by name, with memory messages
// in words; ErrNoDisassembler where the library for it is not installed.
func (c *Compiler) Disassemble(b *Binary) (map[string]string, error) {
	dir, err := os.MkdirTemp(c.dir, "asm-")
	if err != nil {
		return nil, err
	}
	// ocloc asks for a name of the library that Debian's package does not have.
	libraries, _ := filepath.Glob("/usr/lib/*/libiga64.so.*")
	if len(libraries) == 0 {
		return nil, ErrNoDisassembler
	}
	if err := os.Symlink(libraries[0], filepath.Join(dir, "libiga64.so")); err != nil {
		return nil, err
	}
	cmd := exec.Command("env", "LD_LIBRARY_PATH="+dir, c.path, "disasm", "-file", b.Path, "-device", b.Device, "-dump", dir)
	if log, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("ocloc disasm %s: %w\n%s", filepath.Base(b.Path), err, log)
	}
	files, _ := filepath.Glob(filepath.Join(dir, ".text.*.asm"))
	if len(files) == 0 {
		return nil, ErrNoDisassembler
	}
	out := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), ".text."), ".asm")
		out[name] = string(text)
	}
	return out, nil
}

// ErrNoDisassembler is returned by Disassemble where libiga64 is not installed.
var ErrNoDisassembler = errors.New("libiga64 is not there; on Debian the package libigc1 has it")
