package transfer

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"roundhouse/kernels/measure"
	"roundhouse/kernels/xpu/cl"
)

// options are what one measurement needs of measure.TransferOptions.
type options struct{ measure.TransferOptions }

func (o *options) complete() {
	if len(o.Sizes) == 0 {
		o.Sizes = []int64{64 << 10, 1 << 20, 64 << 20}
	}
	if o.Time == 0 {
		o.Time = time.Second / 5
	}
}

// AddressOf names a device: its PCI address, or its name where the driver tells none.
func AddressOf(d cl.Device) string { return cmp.Or(d.PCI, d.Name) }

// Measure measures the ways between the host and each device, between each two devices,
// and the sum over all of them. What arrives is compared with what was sent.
func Measure(lib *cl.Library, devices []cl.Device, t measure.TransferOptions, report func(measure.Transfer)) error {
	o := options{t}
	o.complete()
	for _, d := range devices {
		if err := alone(lib, d, o, report); err != nil {
			return err
		}
	}
	for i, from := range devices {
		for k, to := range devices {
			if i == k {
				continue
			}
			if err := between(lib, from, to, o, report); err != nil {
				return err
			}
		}
	}
	for n := 2; n <= min(len(devices), 8); n *= 2 {
		for _, size := range o.Sizes {
			if err := reduced(lib, devices[:n], size, o, report); err != nil {
				return err
			}
		}
	}
	return nil
}

// alone measures the ways between the host and one device.
func alone(lib *cl.Library, d cl.Device, o options, report func(measure.Transfer)) error {
	c, err := lib.Open(d)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, size := range o.Sizes {
		b, err := c.Buffer(size)
		if err != nil {
			return err
		}
		sent, got := pattern(size, 1), make([]byte, size)
		up, err := o.time(func() error { return b.Write(0, sent) })
		var down float64
		if err == nil {
			down, err = o.time(func() error { return b.Read(0, got) })
		}
		b.Release()
		if err == nil && !bytes.Equal(sent, got) {
			err = fmt.Errorf("%s: %d bytes came back changed", AddressOf(d), size)
		}
		if err != nil {
			return err
		}
		report(measure.Transfer{Way: measure.Upload, From: "host", To: AddressOf(d), Bytes: size, Seconds: up})
		report(measure.Transfer{Way: measure.Download, From: AddressOf(d), To: "host", Bytes: size, Seconds: down})
	}
	return nil
}

// between measures the ways from one device to another. Devices of different drivers have
// the one through the host alone.
func between(lib *cl.Library, from, to cl.Device, o options, report func(measure.Transfer)) error {
	a, b, err := lib.OpenPair(from, to)
	direct := err == nil
	if !direct {
		if a, err = lib.Open(from); err != nil {
			return err
		}
		if b, err = lib.Open(to); err != nil {
			a.Close()
			return err
		}
	}
	defer a.Close()
	defer b.Close()
	size := slices.Max(o.Sizes)
	x, err := a.Buffer(size)
	if err != nil {
		return err
	}
	defer x.Release()
	y, err := b.Buffer(size)
	if err != nil {
		return err
	}
	defer y.Release()
	host := make([]byte, size)
	one := func(way string, move func() error) error {
		t := measure.Transfer{Way: way, From: AddressOf(from), To: AddressOf(to), Bytes: size}
		if t.Seconds, err = o.moved(x, y, move); err != nil {
			return fmt.Errorf("%s to %s, %s: %w", t.From, t.To, way, err)
		}
		report(t)
		return nil
	}
	if direct {
		if err := one(measure.Direct, func() error { return x.CopyTo(y) }); err != nil {
			return err
		}
	}
	return one(measure.ByHost, func() error {
		if err := x.Read(0, host); err != nil {
			return err
		}
		return y.Write(0, host)
	})
}

// moved times a move from one buffer to another and looks at what has arrived.
func (o *options) moved(x, y *cl.Buffer, move func() error) (float64, error) {
	sent := pattern(x.Size, 2)
	if err := x.Write(0, sent); err != nil {
		return 0, err
	}
	if err := y.Zero(); err != nil {
		return 0, err
	}
	seconds, err := o.time(move)
	if err != nil {
		return 0, err
	}
	got := make([]byte, y.Size)
	if err := y.Read(0, got); err != nil {
		return 0, err
	}
	if !bytes.Equal(sent, got) {
		return 0, fmt.Errorf("%d bytes arrived changed", x.Size)
	}
	return seconds, nil
}

// reduced measures the sum of a vector over devices: all come to the host, side by side,
// are added there, and go back.
func reduced(lib *cl.Library, devices []cl.Device, size int64, o options, report func(measure.Transfer)) error {
	var vectors []*cl.Buffer
	for i, d := range devices {
		c, err := lib.Open(d)
		if err != nil {
			return err
		}
		defer c.Close()
		b, err := c.Buffer(size)
		if err != nil {
			return err
		}
		defer b.Release()
		if err := b.Write(0, floats(size, float32(i+1))); err != nil {
			return err
		}
		vectors = append(vectors, b)
	}
	parts := make([][]byte, len(vectors))
	for i := range parts {
		parts[i] = make([]byte, size)
	}
	sum := make([]byte, size)
	seconds, err := o.time(func() error {
		if err := each(vectors, func(i int, b *cl.Buffer) error { return b.Read(0, parts[i]) }); err != nil {
			return err
		}
		add(sum, parts)
		return each(vectors, func(_ int, b *cl.Buffer) error { return b.Write(0, sum) })
	})
	if err != nil {
		return err
	}
	if got, want := sum, floats(size, float32(len(devices)+1)/2); !bytes.Equal(got, want) { // the mean of 1, 2, … n
		return fmt.Errorf("the sum over %d devices is wrong", len(devices))
	}
	report(measure.Transfer{Way: measure.Reduce, Ranks: len(devices), Bytes: size, Seconds: seconds})
	return nil
}

// each does something with every buffer at once.
func each(all []*cl.Buffer, do func(int, *cl.Buffer) error) error {
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, b := range all {
		wait.Go(func() { errs[i] = do(i, b) })
	}
	wait.Wait()
	return cmp.Or(errs...)
}

// add is the sum of vectors of float32, scaled so that summing again and again stays finite.
func add(sum []byte, parts [][]byte) {
	scale := 1 / float32(len(parts))
	for at := 0; at+4 <= len(sum); at += 4 {
		var v float32
		for _, p := range parts {
			v += math.Float32frombits(binary.LittleEndian.Uint32(p[at:]))
		}
		binary.LittleEndian.PutUint32(sum[at:], math.Float32bits(v*scale))
	}
}

// time is the median of runs until o.Time is over, at least three after a first one that
// counts for nothing.
func (o *options) time(run func() error) (float64, error) {
	if err := run(); err != nil {
		return 0, err
	}
	var all []float64
	for began := time.Now(); len(all) < 3 || time.Now().Sub(began) < o.Time; {
		from := time.Now()
		if err := run(); err != nil {
			return 0, err
		}
		all = append(all, time.Now().Sub(from).Seconds())
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// pattern is bytes of which no two pages are alike.
func pattern(size int64, seed uint64) []byte {
	p := make([]byte, size)
	for at, v := 0, seed*0x9E3779B97F4A7C15; at+8 <= len(p); at += 8 {
		v ^= v << 13
		v ^= v >> 7
		v ^= v << 17
		binary.LittleEndian.PutUint64(p[at:], v)
	}
	return p
}

// floats is a vector of one number.
func floats(size int64, v float32) []byte {
	p := make([]byte, size)
	for at := 0; at+4 <= len(p); at += 4 {
		binary.LittleEndian.PutUint32(p[at:], math.Float32bits(v))
	}
	return p
}
