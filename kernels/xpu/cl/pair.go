package cl

import "fmt"

// OpenPair begins to use two devices of one driver together: buffers of one can be copied
// to the other by CopyTo. Both are to be closed.
func (l *Library) OpenPair(a, b Device) (first, second *Context, err error) {
	if a.platform != b.platform {
		return nil, nil, fmt.Errorf("%s and %s have different drivers (%s, %s)", a.Name, b.Name, a.Platform, b.Platform)
	}
	const contextPlatform = 0x1084
	properties := []uintptr{contextPlatform, a.platform, 0}
	ids := []uintptr{a.id, b.id}
	var code int32
	handle := l.createContext(&properties[0], 2, &ids[0], 0, 0, &code)
	if err := check("clCreateContext", code); err != nil {
		return nil, nil, fmt.Errorf("cannot use %s and %s together: %w", a.Name, b.Name, err)
	}
	first, second = &Context{lib: l, Device: a, handle: handle}, &Context{lib: l, Device: b, handle: handle, guest: true}
	for _, c := range []*Context{first, second} {
		c.queue = l.createQueue(handle, c.Device.id, 0, &code)
		if err := check("clCreateCommandQueue", code); err != nil {
			if c == second {
				l.releaseQueue(first.queue)
			}
			l.releaseContext(handle)
			return nil, nil, fmt.Errorf("cannot use %s: %w", c.Device.Name, err)
		}
	}
	return first, second, nil
}

// CopyTo copies the whole buffer to one of the same size, on the other's device, and waits
// for it. Which way the bytes take is the driver's to choose.
func (b *Buffer) CopyTo(to *Buffer) error {
	if b.Size != to.Size {
		return fmt.Errorf("a buffer of %d bytes cannot be copied to one of %d", b.Size, to.Size)
	}
	if err := b.c.Finish(); err != nil {
		return err
	}
	if err := check("clEnqueueCopyBuffer", b.c.lib.enqueueCopyBuffer(to.c.queue, b.handle, to.handle, 0, 0, uintptr(b.Size), 0, nil, nil)); err != nil {
		return err
	}
	return to.c.Finish()
}
