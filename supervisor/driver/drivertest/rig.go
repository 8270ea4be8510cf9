package drivertest

import (
	"archive/tar"
	"bytes"
	"testing"
	"time"

	"roundhouse/supervisor/driver"
	"roundhouse/test/patience"
)

// Patience is how long a test waits for what must only happen at all, on an idle machine.
const Patience = 4 * time.Minute

// Until waits until something is so, and fails the test where that takes longer than
// Patience.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := patience.For(Patience)
	for !ok() {
		if limit.Over() {
			t.Fatalf("%s: not within %v", what, Patience)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// Only returns the one instance that a driver has.
func Only(t testing.TB, d driver.Driver) driver.Instance {
	t.Helper()
	list, err := d.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 {
		t.Fatalf("%d instances: %+v", len(list), list)
	}
	return list[0]
}

// Hear waits for a hint that something has changed.
func Hear(t testing.TB, what string, d driver.Driver) {
	t.Helper()
	Until(t, what+": a hint", func() bool {
		select {
		case <-d.Changed():
			return true
		default:
			return false
		}
	})
}

// Layer is the one layer of an image that holds a program alone.
func Layer(t testing.TB, name string, program []byte) []byte {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(program); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return layer.Bytes()
}
