package wire

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// proxyTwoOf is a header of version 2.
func proxyTwoOf(command, family byte, rest string) string {
	b := append([]byte(proxyV2), command, family)
	return string(binary.BigEndian.AppendUint16(b, uint16(len(rest)))) + rest
}

const proxied4 = "\xcb\x00\x71\x09\x0a\x00\x00\x01\xdc\x04\x01\xbb"

// TestReadProxy reads each header as it comes byte by byte: what is not whole asks for
// more, and what follows is left alone.
func TestReadProxy(t *testing.T) {
	const v6 = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\xdc\x04\x01\xbb"
	for _, c := range []struct {
		in, want string // "-": nobody
		err      error
	}{
		{"PROXY TCP4 203.0.113.9 10.0.0.1 56324 443\r\n", "203.0.113.9:56324", nil},
		{"PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n", "[2001:db8::1]:56324", nil},
		{"PROXY TCP6 ::ffff:203.0.113.9 ::1 1 2\r\n", "203.0.113.9:1", nil},
		{"PROXY UNKNOWN\r\n", "-", nil},
		{"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", "-", nil},
		{proxyTwoOf(0x21, 0x11, proxied4), "203.0.113.9:56324", nil},
		{proxyTwoOf(0x21, 0x11, proxied4+"\x04\x00\x01x"), "203.0.113.9:56324", nil},
		{proxyTwoOf(0x21, 0x21, v6), "[2001:db8::1]:56324", nil},
		{proxyTwoOf(0x20, 0x00, ""), "-", nil},
		{proxyTwoOf(0x20, 0x11, proxied4), "-", nil},
		{proxyTwoOf(0x21, 0x31, strings.Repeat("\x00", 216)), "-", nil},
		{proxyTwoOf(0x21, 0x00, ""), "-", nil},
		{"PROXY TCP4 203.0.113.9 10.0.0.1 56324\r\n", "", ErrProxy},
		{"PROXY TCP4 2001:db8::1 10.0.0.1 1 2\r\n", "", ErrProxy},
		{"PROXY TCP4 203.0.113.9 10.0.0.1 99999 2\r\n", "", ErrProxy},
		{"PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", "", ErrProxy},
		{"PROXY UDP4 203.0.113.9 10.0.0.1 1 2\r\n", "", ErrProxy},
		{"PROXY \r\n", "", ErrProxy},
		{"PROXY TCP4 " + strings.Repeat("1", 200) + "\r\n", "", ErrProxy},
		{proxyTwoOf(0x11, 0x11, proxied4), "", ErrProxy},
		{proxyTwoOf(0x22, 0x11, proxied4), "", ErrProxy},
		{proxyTwoOf(0x21, 0x11, proxied4[:11]), "", ErrProxy},
		{proxyTwoOf(0x21, 0x21, proxied4), "", ErrProxy},
		{proxyTwoOf(0x21, 0x11, strings.Repeat("\x00", MostProxy)), "", ErrProxy},
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "", ErrNoProxy},
		{"POST / HTTP/1.1\r\n", "", ErrNoProxy},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", ErrNoProxy},
		{"\r\nGET / HTTP/1.1\r\n", "", ErrNoProxy},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaaaaaa", "", ErrNoProxy},
	} {
		in := c.in + "rest"
		for came := 0; ; came++ {
			if came > len(in) {
				t.Errorf("%.60q: all of it tells nothing", c.in)
				break
			}
			from, n, err := ReadProxy([]byte(in[:came]))
			if n == 0 && err == nil {
				continue
			}
			got := from.String()
			if from == (netip.AddrPort{}) {
				got = "-"
			}
			if !errors.Is(err, c.err) || err == nil && (got != c.want || n != len(c.in)) {
				t.Errorf("%.60q: %s in %d of %d bytes, %v; want %s, %v", c.in, got, n, len(c.in), err, c.want, c.err)
			}
			break
		}
	}
}

// FuzzReadProxy reads whatever comes first on a connection: the header alone says what
// it says with more behind it, and no client is named that is none.
func FuzzReadProxy(f *testing.F) {
	f.Add([]byte("PROXY TCP4 203.0.113.9 10.0.0.1 56324 443\r\nGET /"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte(proxyTwoOf(0x21, 0x11, proxied4) + "GET /"))
	f.Add([]byte(proxyTwoOf(0x20, 0, "")))
	f.Fuzz(func(t *testing.T, in []byte) {
		from, n, err := ReadProxy(in)
		switch {
		case n < 0 || n > min(len(in), MostProxy) || n > 0 && err != nil:
			t.Fatalf("%d of %d bytes, %v", n, len(in), err)
		case n == 0 && from != (netip.AddrPort{}):
			t.Fatalf("%v, %v, without a header", from, err)
		case n == 0 && err == nil && len(in) >= MostProxy:
			t.Fatal("more is waited for than a header may have")
		case n == 0:
			return
		}
		if from.Addr().IsValid() && (from.Addr().Is4In6() || from.Addr().Zone() != "") {
			t.Fatalf("%v is no plain address", from)
		}
		if again, m, err := ReadProxy(in[:n]); again != from || m != n || err != nil {
			t.Fatalf("the header alone is %v, %d, %v; with what follows it was %v, %d", again, m, err, from, n)
		}
	})
}
