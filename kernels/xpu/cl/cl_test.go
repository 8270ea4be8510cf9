//go:build pocl || intel

package cl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// open uses the first device of any driver; PoCL makes one of every CPU.
func open(t *testing.T) *Context {
	t.Helper()
	lib, err := Load("")
	if err != nil {
		t.Skipf("%v; for tests the package pocl-opencl-icd is enough", err)
	}
	devices, err := lib.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if len(devices) == 0 {
		t.Skip("no OpenCL driver; for tests the package pocl-opencl-icd is enough")
	}
	c, err := lib.Open(devices[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

const source = `
__kernel void add(__global const int *a, __global int *b, int c, float d, long e) {
	size_t i = get_global_id(0);
	b[i] = a[i] + c + (int)d + (int)e;
}`

func TestComputes(t *testing.T) {
	c := open(t)
	program, err := c.Build(source, "-cl-std=CL1.2")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Release()
	binaryForm, err := program.Binary()
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.BuildBinary(binaryForm, "")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Release()

	for _, p := range []*Program{program, again} {
		got := runAdd(t, c, p)
		for i, v := range got {
			if want := int32(i) + 10 + 2 + 300; v != want {
				t.Fatalf("element %d is %d; want %d", i, v, want)
			}
		}
	}
}

func runAdd(t *testing.T, c *Context, p *Program) []int32 {
	t.Helper()
	const n = 64
	in := make([]int32, n)
	for i := range in {
		in[i] = int32(i)
	}
	k, err := p.Kernel("add")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Release()
	a, errA := c.Buffer(4 * n)
	b, errB := c.Buffer(4 * n)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	defer b.Release()
	raw := new(bytes.Buffer)
	binary.Write(raw, binary.LittleEndian, in)
	out := make([]byte, 4*n)
	err = errors.Join(a.Write(0, raw.Bytes()), b.Zero(),
		k.SetBuffer(0, a), k.SetBuffer(1, b), k.SetInt(2, 10), k.SetFloat(3, 2.5), k.SetLong(4, 300),
		k.Run([]uintptr{n}, []uintptr{16}), b.Read(0, out))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]int32, n)
	binary.Read(bytes.NewReader(out), binary.LittleEndian, got)
	return got
}

// A program that does not build says where, in the compiler's own words.
func TestBuildLog(t *testing.T) {
	c := open(t)
	_, err := c.Build("__kernel void broken() { undeclared = 1; }", "")
	if err == nil || !strings.Contains(err.Error(), "undeclared") {
		t.Fatalf("got %v; want the compiler's log", err)
	}
}

func TestErrorsInWords(t *testing.T) {
	if _, err := Load("libNoSuchOpenCL.so"); !errors.Is(err, ErrNoLibrary) {
		t.Errorf("got %v; want %v", err, ErrNoLibrary)
	}
	c := open(t)
	program, err := c.Build(source, "")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Release()
	if _, err := program.Kernel("absent"); err == nil || !strings.Contains(err.Error(), "no kernel of that name") {
		t.Errorf("got %v", err)
	}
	var e *Error
	if _, err := c.Buffer(1 << 60); !errors.As(err, &e) {
		t.Errorf("a buffer of 2^60 bytes: %v", err)
	}
}
