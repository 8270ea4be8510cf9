package balancer

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// serveTry hands what comes below /try/ to the door as a request like any other: the
// same checks and bounds, the same queue and books. Its priority is low.
func (d *Door) serveTry() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "door"
			r.Out.URL.Path = "/" + strings.TrimPrefix(r.In.URL.Path, "/try/")
			r.Out.URL.RawPath = ""
			r.Out.Host = "door"
			for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Origin", "X-Forwarded-For", "Accept-Encoding"} {
				r.Out.Header.Del(name)
			}
			r.Out.Header.Set("X-Roundhouse-Priority", "low")
		},
		Transport:     &http.Transport{DialContext: d.dialSelf, DisableKeepAlives: true, DisableCompression: true},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "the door gave no answer: "+err.Error(), http.StatusBadGateway)
		},
	}
}

// dialSelf makes a connection to this door that nobody else can reach.
func (d *Door) dialSelf(context.Context, string, string) (net.Conn, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs, err := unixConn(ends[0])
	if err != nil {
		unix.Close(ends[1])
		return nil, err
	}
	ours, err := unixConn(ends[1])
	if err != nil {
		theirs.Close()
		return nil, err
	}
	g := d.guardOf(inner{ours}, nil)
	d.conns.add(g)
	go d.serveFasthttp(g)
	return theirs, nil
}

// unixConn makes a connection of a descriptor, which is then the connection's.
func unixConn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "self")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}
