package balancer

import (
	"bytes"
	"net/netip"
	"slices"

	"roundhouse/configs"
)

// proxies are those whose X-Forwarded-For is believed.
type proxies []netip.Prefix

// client is the address that a request comes from: its connection's, or, if that
// is a trusted proxy's, the last in X-Forwarded-For that is none of those. What
// stands before it may be the client's own invention.
func (trusted proxies) client(peer netip.Addr, forwarded []byte) netip.Addr {
	for at := len(forwarded); at >= 0 && trusted.include(peer); {
		from := bytes.LastIndexByte(forwarded[:at], ',') + 1
		next, ok := forwardedAddr(string(bytes.TrimSpace(forwarded[from:at])))
		if !ok {
			break // unknown, or hidden: the proxy that says so is the last address known
		}
		peer, at = next, from-1
	}
	return peer
}

// forwardedAddr reads an address, with a port or without.
func forwardedAddr(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap(), true
	}
	if p, err := netip.ParseAddrPort(s); err == nil {
		return p.Addr().Unmap(), true
	}
	if n := len(s); n > 2 && s[0] == '[' && s[n-1] == ']' {
		a, err := netip.ParseAddr(s[1 : n-1])
		return a.Unmap(), err == nil
	}
	return netip.Addr{}, false
}

// include reports whether an address is a trusted proxy's.
func (trusted proxies) include(a netip.Addr) bool {
	return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) })
}

// trustedOf reads the addresses of trusted proxies.
func trustedOf(cfg *configs.Door) (proxies, error) {
	var trusted proxies
	for _, s := range cfg.TrustedProxies {
		p, err := configs.ParsePrefix(s)
		if err != nil {
			return nil, err
		}
		trusted = append(trusted, p)
	}
	return trusted, nil
}
