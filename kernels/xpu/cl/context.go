package cl

import (
	"fmt"
	"strings"
	"unsafe"
)

// Context is one device in use: a context and its one in-order queue.
type Context struct {
	lib    *Library
	Device Device
	handle uintptr
	queue  uintptr
	guest  bool // of a pair, whose first gives the handle back

	// Waits counts how often the host has waited for the queue, Sent the bytes that it has
	// written to the device, and Brought those that it has read from there.
	Waits         int
	Sent, Brought int64
}

// Open begins to use a device.
func (l *Library) Open(d Device) (*Context, error) {
	const contextPlatform = 0x1084
	properties := []uintptr{contextPlatform, d.platform, 0}
	var code int32
	c := &Context{lib: l, Device: d}
	c.handle = l.createContext(&properties[0], 1, &d.id, 0, 0, &code)
	if err := check("clCreateContext", code); err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", d.Name, err)
	}
	c.queue = l.createQueue(c.handle, d.id, 0, &code)
	if err := check("clCreateCommandQueue", code); err != nil {
		l.releaseContext(c.handle)
		return nil, fmt.Errorf("cannot use %s: %w", d.Name, err)
	}
	return c, nil
}

// Close waits for the queue and gives the device back. Buffers, programs and
// kernels are to be released before.
func (c *Context) Close() error {
	err := c.Finish()
	c.lib.releaseQueue(c.queue)
	if !c.guest {
		c.lib.releaseContext(c.handle)
	}
	return err
}

// Flush makes the device begin what was enqueued.
func (c *Context) Flush() error { return check("clFlush", c.lib.flush(c.queue)) }

// Finish waits until all that was enqueued is done.
func (c *Context) Finish() error {
	c.Waits++
	return check("clFinish", c.lib.finish(c.queue))
}

// Program is a built program.
type Program struct {
	c      *Context
	handle uintptr
}

// Build compiles OpenCL C. The error holds the compiler's own log.
func (c *Context) Build(source, options string) (*Program, error) {
	handle, err := c.fromSource(source)
	if err != nil {
		return nil, err
	}
	return c.build(handle, options)
}

func (c *Context) fromSource(source string) (uintptr, error) {
	var code int32
	first, length := unsafe.StringData(source), uintptr(len(source))
	handle := c.lib.createWithSource(c.handle, 1, &first, &length, &code)
	return handle, check("clCreateProgramWithSource", code)
}

// BuildIL compiles SPIR-V; an error where the driver takes none.
func (c *Context) BuildIL(il []byte, options string) (*Program, error) {
	handle, err := c.fromIL(il)
	if err != nil {
		return nil, err
	}
	return c.build(handle, options)
}

func (c *Context) fromIL(il []byte) (uintptr, error) {
	if c.lib.createWithIL == nil || len(il) == 0 || !strings.Contains(c.Device.IL, "SPIR-V") {
		return 0, fmt.Errorf("%s takes no SPIR-V", c.Device.Name)
	}
	var code int32
	handle := c.lib.createWithIL(c.handle, unsafe.Pointer(&il[0]), uintptr(len(il)), &code)
	return handle, check("clCreateProgramWithIL", code)
}

// BuildBinary takes what Binary gave, of the same device and driver version.
func (c *Context) BuildBinary(binary []byte, options string) (*Program, error) {
	if len(binary) == 0 {
		return nil, &Error{Call: "clCreateProgramWithBinary", Code: -42}
	}
	var code, status int32
	first, length := &binary[0], uintptr(len(binary))
	handle := c.lib.createWithBinary(c.handle, 1, &c.Device.id, &length, &first, &status, &code)
	if code == 0 {
		code = status
	}
	if err := check("clCreateProgramWithBinary", code); err != nil {
		return nil, err
	}
	return c.build(handle, options)
}

func (c *Context) build(handle uintptr, options string) (*Program, error) {
	err := check("clBuildProgram", c.lib.buildProgram(handle, 1, &c.Device.id, options, 0, 0))
	if err == nil {
		return &Program{c, handle}, nil
	}
	log := c.log(handle)
	c.lib.releaseProgram(handle)
	return nil, fmt.Errorf("%s does not build the kernels with %q: %w; another version of the GPU's driver may (on Debian intel-opencl-icd); its compiler says\n%s",
		c.Device.Name, options, err, log)
}

// log is what the compiler said of a program.
func (c *Context) log(handle uintptr) string {
	const buildLog = 0x1183
	var size uintptr
	if c.lib.getBuildInfo(handle, c.Device.id, buildLog, 0, nil, &size) != 0 || size == 0 {
		return ""
	}
	b := make([]byte, size)
	if c.lib.getBuildInfo(handle, c.Device.id, buildLog, size, unsafe.Pointer(&b[0]), nil) != 0 {
		return ""
	}
	return text(b)
}

// Binary is the built program in the driver's own form, to be kept for BuildBinary.
func (p *Program) Binary() ([]byte, error) {
	const binarySizes, binaries = 0x1165, 0x1166
	var size uintptr
	if err := check("clGetProgramInfo", p.c.lib.getProgramInfo(p.handle, binarySizes, unsafe.Sizeof(size), unsafe.Pointer(&size), nil)); err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, fmt.Errorf("%s gives no binary", p.c.Device.Name)
	}
	b := make([]byte, size)
	first := &b[0]
	err := check("clGetProgramInfo", p.c.lib.getProgramInfo(p.handle, binaries, unsafe.Sizeof(first), unsafe.Pointer(&first), nil))
	return b, err
}

// Release gives the program back. Its kernels stay.
func (p *Program) Release() { p.c.lib.releaseProgram(p.handle) }

// Kernel is one entry of a program.
type Kernel struct {
	c      *Context
	handle uintptr
	Name   string
}

// Kernel finds an entry by name.
func (p *Program) Kernel(name string) (*Kernel, error) {
	var code int32
	handle := p.c.lib.createKernel(p.handle, name, &code)
	if err := check("clCreateKernel "+name, code); err != nil {
		return nil, err
	}
	return &Kernel{p.c, handle, name}, nil
}

// Release gives the kernel back.
func (k *Kernel) Release() { k.c.lib.releaseKernel(k.handle) }

// SetBuffer sets an argument to a buffer; nil sets a null pointer.
func (k *Kernel) SetBuffer(index int, b *Buffer) error {
	var handle uintptr
	if b != nil {
		handle = b.handle
	}
	return check("clSetKernelArg "+k.Name, k.c.lib.setKernelArg(k.handle, uint32(index), unsafe.Sizeof(handle), unsafe.Pointer(&handle)))
}

// SetInt sets an argument of type int.
func (k *Kernel) SetInt(index int, v int32) error {
	return check("clSetKernelArg "+k.Name, k.c.lib.setKernelArg(k.handle, uint32(index), 4, unsafe.Pointer(&v)))
}

// SetFloat sets an argument of type float.
func (k *Kernel) SetFloat(index int, v float32) error {
	return check("clSetKernelArg "+k.Name, k.c.lib.setKernelArg(k.handle, uint32(index), 4, unsafe.Pointer(&v)))
}

// SetLong sets an argument of type long.
func (k *Kernel) SetLong(index int, v int64) error {
	return check("clSetKernelArg "+k.Name, k.c.lib.setKernelArg(k.handle, uint32(index), 8, unsafe.Pointer(&v)))
}

// SetLocal sets an argument to so many bytes of memory that a group shares.
func (k *Kernel) SetLocal(index, bytes int) error {
	return check("clSetKernelArg "+k.Name, k.c.lib.setKernelArg(k.handle, uint32(index), uintptr(bytes), nil))
}

// Run enqueues the kernel over global work items in groups of local, one to
// three dimensions each.
func (k *Kernel) Run(global, local []uintptr) error {
	var l *uintptr
	if len(local) > 0 {
		l = &local[0]
	}
	return check("clEnqueueNDRangeKernel "+k.Name,
		k.c.lib.enqueueNDRangeKernel(k.c.queue, k.handle, uint32(len(global)), nil, &global[0], l, 0, nil, nil))
}

// Buffer is memory of the device.
type Buffer struct {
	c      *Context
	handle uintptr
	Size   int64
}

// Buffer sets memory aside on the device.
func (c *Context) Buffer(size int64) (*Buffer, error) {
	var code int32
	handle := c.lib.createBuffer(c.handle, c.Device.bufferFlags(size), uintptr(max(size, 4)), nil, &code)
	if err := check("clCreateBuffer", code); err != nil {
		return nil, fmt.Errorf("%d bytes on %s (it has %d in all, %d in one piece): %w",
			size, c.Device.Name, c.Device.GlobalMemory, c.Device.MaxAllocation, err)
	}
	return &Buffer{c, handle, size}, nil
}

// bufferFlags are those of a buffer of a size. Intel's GPUs take one that is larger than
// they say (4 GiB) where it is asked for and the kernels are compiled for it.
func (d *Device) bufferFlags(size int64) uint64 {
	const readWrite, unrestricted = 1, 1 << 23 // CL_MEM_ALLOW_UNRESTRICTED_SIZE_INTEL
	if d.Kind == GPU && d.Intels() && uint64(size) > d.MaxAllocation {
		return readWrite | unrestricted
	}
	return readWrite
}

// Release gives the memory back.
func (b *Buffer) Release() { b.c.lib.releaseMemObject(b.handle) }

// Write copies to the device. It returns when p may be used again.
func (b *Buffer) Write(offset int64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	b.c.Waits++
	b.c.Sent += int64(len(p))
	return check("clEnqueueWriteBuffer", b.c.lib.enqueueWriteBuffer(b.c.queue, b.handle, 1, uintptr(offset), uintptr(len(p)), unsafe.Pointer(&p[0]), 0, nil, nil))
}

// WriteLater copies to the device once it comes to that. p is not to change before
// the next wait.
func (b *Buffer) WriteLater(offset int64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	b.c.Sent += int64(len(p))
	return check("clEnqueueWriteBuffer", b.c.lib.enqueueWriteBuffer(b.c.queue, b.handle, 0, uintptr(offset), uintptr(len(p)), unsafe.Pointer(&p[0]), 0, nil, nil))
}

// Read copies from the device after all that was enqueued, and waits for it.
func (b *Buffer) Read(offset int64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	b.c.Waits++
	b.c.Brought += int64(len(p))
	return check("clEnqueueReadBuffer", b.c.lib.enqueueReadBuffer(b.c.queue, b.handle, 1, uintptr(offset), uintptr(len(p)), unsafe.Pointer(&p[0]), 0, nil, nil))
}

// Zero clears the buffer.
func (b *Buffer) Zero() error {
	var zero uint32
	size := uintptr(max(b.Size, 4)) &^ 3
	return check("clEnqueueFillBuffer", b.c.lib.enqueueFillBuffer(b.c.queue, b.handle, unsafe.Pointer(&zero), 4, 0, size, 0, nil, nil))
}
