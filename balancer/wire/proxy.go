package wire

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
)

// ErrNoProxy tells that bytes begin no PROXY header, and ErrProxy that they begin one
// which is none after all.
var (
	ErrNoProxy = errors.New("the connection does not begin with a PROXY header")
	ErrProxy   = errors.New("the connection begins with a PROXY header that is malformed")
)

// The beginnings and bounds of PROXY headers, as HAProxy's protocol has them.
const (
	proxyV1     = "PROXY "
	proxyV2     = "\r\n\r\n\x00\r\nQUIT\n"
	mostProxyV1 = 107 // bytes of a line of version 1
	proxyV2Head = 16  // bytes of the fixed part of version 2

	// MostProxy is the longest header that is taken, with all that version 2 may say
	// of TLS behind the addresses.
	MostProxy = proxyV2Head + 4096
)

// ReadProxy reads the PROXY header, of version 1 or 2, that b begins with, and returns
// its length and the client that it names: the zero address where it names none, as for
// the proxy's own health checks. The length is 0 while more must come to tell.
func ReadProxy(b []byte) (from netip.AddrPort, n int, err error) {
	switch {
	case len(b) == 0:
		return from, 0, nil
	case begins(b, proxyV1):
		return readProxyV1(b)
	case begins(b, proxyV2):
		return readProxyV2(b)
	}
	return from, 0, ErrNoProxy
}

// begins reports whether b begins with mark, as far as it has come.
func begins(b []byte, mark string) bool {
	n := min(len(b), len(mark))
	return string(b[:n]) == mark[:n]
}

func readProxyV1(b []byte) (none netip.AddrPort, n int, err error) {
	line, _, ended := strings.Cut(string(b[:min(len(b), mostProxyV1)]), "\r\n")
	if !ended {
		if len(b) >= mostProxyV1 {
			return none, 0, ErrProxy
		}
		return none, 0, nil
	}
	n = len(line) + len("\r\n")
	parts := strings.Split(line, " ")
	if parts[1] == "UNKNOWN" {
		return none, n, nil
	}
	if len(parts) != 6 || parts[1] != "TCP4" && parts[1] != "TCP6" {
		return none, 0, ErrProxy
	}
	addr, bad := netip.ParseAddr(parts[2])
	from, err := netip.ParseAddrPort("0.0.0.0:" + parts[4])
	if bad != nil || err != nil || addr.Is4() != (parts[1] == "TCP4") || addr.Zone() != "" {
		return none, 0, ErrProxy
	}
	return netip.AddrPortFrom(addr.Unmap(), from.Port()), n, nil
}

func readProxyV2(b []byte) (none netip.AddrPort, n int, err error) {
	if len(b) < proxyV2Head {
		return none, 0, nil
	}
	n = proxyV2Head + int(binary.BigEndian.Uint16(b[14:]))
	command, family := b[12], b[13]>>4
	switch {
	case command != 0x20 && command != 0x21 || n > MostProxy:
		return none, 0, ErrProxy
	case len(b) < n:
		return none, 0, nil
	case command == 0x20:
		return none, n, nil // the proxy's own
	}
	rest := b[proxyV2Head:n]
	switch {
	case family == 1 && len(rest) >= 12:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest)), binary.BigEndian.Uint16(rest[8:])), n, nil
	case family == 2 && len(rest) >= 36:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(rest)).Unmap(), binary.BigEndian.Uint16(rest[32:])), n, nil
	case family == 1 || family == 2:
		return none, 0, ErrProxy
	}
	return none, n, nil // a unix socket, or a family that is not said
}
