package control

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Listen binds a TCP address that the configuration gives as knob, and says what
// to do where it cannot be had.
func Listen(knob, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: another program listens on %s already: end that (`ss -ltnp` names it), or choose another address: %w", knob, address, err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: this user may not listen on %s: take a port from 1024 on, or give the program CAP_NET_BIND_SERVICE: %w", knob, address, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s: %s is no address of this machine (`ip address` lists them): %w", knob, address, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", knob, err)
	}
	return l, nil
}
