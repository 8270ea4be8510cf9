package server

import (
	"net/netip"
	"net/url"
	"testing"
)

// TestPublic: no address of this machine, of its networks, or that stands for
// such a one is fetched from.
func TestPublic(t *testing.T) {
	f := func(want bool, addresses ...string) {
		t.Helper()
		for _, a := range addresses {
			if public(netip.MustParseAddr(a)) != want {
				t.Errorf("%s is public: %v; want %v", a, !want, want)
			}
		}
	}
	f(true, "1.1.1.1", "93.184.216.34", "2606:4700::1111")
	f(false, "127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "198.18.0.1", "224.0.0.1",
		"240.0.0.1", "255.255.255.255", "192.0.0.1", "::1", "::", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::")
}

// TestAllows: only the hosts that were named, by ordinary ports.
func TestAllows(t *testing.T) {
	f := func(want bool, source string, domains ...string) {
		t.Helper()
		u, err := url.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&Sight{Domains: domains}).allows(u); (err == nil) != want {
			t.Errorf("%s with %v: %v", source, domains, err)
		}
	}
	f(true, "https://a.example/x.png", "a.example")
	f(true, "http://A.example:80/x.png", "a.example")
	f(true, "https://b.example:443/", "*")
	f(false, "https://a.example/x.png")
	f(false, "https://b.a.example/", "a.example")
	f(false, "https://a.example.evil.example/", "a.example")
	f(false, "https://a.example:22/", "a.example")
	f(false, "https://a.example@b.example/", "a.example")
	f(false, "ftp://a.example/", "a.example")
}
