package configs

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParsePrefix reads a range of addresses, or one address.
func ParsePrefix(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			a = a.Unmap()
			return netip.PrefixFrom(a, a.BitLen()), nil
		}
	} else if p, err := netip.ParsePrefix(s); err == nil && !p.Addr().Is4In6() {
		if p != p.Masked() {
			return netip.Prefix{}, fmt.Errorf("%q has bits set behind its first %d; the range is %q", s, p.Bits(), p.Masked())
		}
		return p, nil
	}
	return netip.Prefix{}, fmt.Errorf(`%q is no address and no range of addresses; write one such as "10.0.0.0/8", "192.0.2.7" or "fd00::/8"`, s)
}
