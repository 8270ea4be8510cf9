package drivertest

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
)

// Bridge makes a network bridge for an engine of the tests' own, and returns the flags
// that have dockerd use it and nothing else. On docker0, where an engine is by default, two
// engines give away the same addresses, so that each answers for the other's containers,
// and the later one wipes the rules of the earlier.
func Bridge(t testing.TB) (flags []string, remove func()) {
	t.Helper()
	name := fmt.Sprintf("rhtest%d", os.Getpid())
	address, err := unused()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"link", "add", "name", name, "type", "bridge"}, {"address", "add", address.String(), "dev", name}, {"link", "set", name, "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("a bridge of the tests' own (ip, as root; package iproute2): %v: %s", err, out)
		}
	}
	return []string{"--bridge", name, "--iptables=false", "--ip6tables=false"}, func() { _ = exec.Command("ip", "link", "delete", name).Run() } // with its engine's last container
}

// unused is an address of a network that this machine is not on.
func unused() (netip.Prefix, error) {
	taken, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Prefix{}, err
	}
next:
	for i := range 256 {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 98, byte(os.Getpid() + i), 1}), 24)
		for _, a := range taken {
			if n, ok := a.(*net.IPNet); ok && n.Contains(p.Addr().AsSlice()) {
				continue next
			}
		}
		return p, nil
	}
	return netip.Prefix{}, fmt.Errorf("no network below 10.98.0.0/16 is free")
}
