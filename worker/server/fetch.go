package server

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Bounds of what is loaded: bytes of a file, and how long a fetch takes.
const (
	mostFetched  = 64 << 20
	fetchTime    = 5 * time.Second
	mostRedirect = 3
)

// load brings the file that a URL names.
func (s *Sight) load(source string) ([]byte, *apiError) {
	scheme, rest, found := strings.Cut(source, ":")
	switch strings.ToLower(scheme) {
	case "data":
		return dataURL(rest)
	case "http", "https":
		return s.fetch(source)
	case "file":
		return s.file(rest)
	}
	if !found || len(scheme) > 16 {
		return nil, badValue("image", "the image's URL has no scheme; send data:, or what the worker's flags allow of http:, https: and file:")
	}
	return nil, badValue("image", "the image's URL has the scheme %s; read are data:, http:, https: and file:", printable(scheme, 16))
}

// dataURL decodes what stands behind data:.
func dataURL(rest string) ([]byte, *apiError) {
	head, text, found := strings.Cut(rest, ",")
	kind, isBase64 := strings.CutSuffix(head, ";base64")
	if !found || !isBase64 {
		return nil, badValue("image", "the image's data: URL is not of the form data:image/png;base64,…")
	}
	if kind != "" && !strings.HasPrefix(kind, "image/") && kind != "application/octet-stream" {
		return nil, badValue("image", "the image's data: URL says that it is %s", printable(kind, 64))
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(text), "="))
	}
	if err != nil {
		return nil, badValue("image", "the image's data: URL is not base64: %v", err)
	}
	return data, nil
}

// file reads a file below the folder that was allowed.
func (s *Sight) file(rest string) ([]byte, *apiError) {
	if s.Folder == "" {
		return nil, badValue("image", "Cannot load local files without `--allowed-local-media-path`.")
	}
	path, err := url.PathUnescape("/" + strings.TrimLeft(rest, "/"))
	name, relErr := filepath.Rel(s.Folder, path)
	refused := badValue("image", "the image's file is not a readable one below `--allowed-local-media-path`")
	if err != nil || relErr != nil || !filepath.IsLocal(name) {
		return nil, refused
	}
	root, err := os.OpenRoot(s.Folder)
	if err != nil {
		return nil, refused
	}
	defer root.Close()
	// A pipe or a device would hold its reader: look before it is opened.
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil, refused
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, refused
	}
	defer f.Close()
	return bounded(f)
}

// bounded reads all of r, if it is not too much.
func bounded(r io.Reader) ([]byte, *apiError) {
	data, err := io.ReadAll(io.LimitReader(r, mostFetched+1))
	switch {
	case err != nil:
		return nil, badValue("image", "the image could not be read to its end")
	case len(data) > mostFetched:
		return nil, unprocessable("the image has more than %d MiB", mostFetched>>20)
	}
	return data, nil
}

// unprocessable is what vLLM answers where a URL does not give a picture.
func unprocessable(format string, args ...any) *apiError {
	return &apiError{Message: fmt.Sprintf(format, args...), Type: "UnprocessableEntityError", Param: "image", Code: http.StatusUnprocessableEntity}
}

// fetch loads from a domain that is allowed.
func (s *Sight) fetch(source string) ([]byte, *apiError) {
	u, err := url.Parse(source)
	if err == nil {
		err = s.allows(u)
	}
	if err != nil {
		return nil, badValue("image", "the image's URL is not fetched: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, badValue("image", "the image's URL cannot be read")
	}
	resp, err := s.client().Do(req)
	if err != nil {
		return nil, unprocessable("the image could not be fetched from %s", printable(u.Host, 128))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, unprocessable("the image could not be fetched: %s answered %d", printable(u.Host, 128), resp.StatusCode)
	}
	return bounded(resp.Body)
}

// allows reports what speaks against a URL: its host must be among the domains,
// and it may name nobody and no other door of theirs.
func (s *Sight) allows(u *url.URL) error {
	host := strings.ToLower(u.Hostname())
	switch {
	case len(s.Domains) == 0:
		return fmt.Errorf("no domain is allowed; send a data: URL, or start the worker with `--allowed-media-domains`")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("it is no http: or https: URL")
	case u.User != nil:
		return fmt.Errorf("it has a user's name")
	case u.Port() != "" && u.Port() != "80" && u.Port() != "443":
		return fmt.Errorf("its port is neither 80 nor 443")
	case !slices.Contains(s.Domains, "*") && !slices.Contains(s.Domains, host):
		return fmt.Errorf("its host is not among `--allowed-media-domains`")
	}
	return nil
}

// client fetches without what belongs to the worker: no proxy of its environment,
// no cookies, no compressed bodies, and only from public addresses, which are
// looked at as they are dialled.
func (s *Sight) client() *http.Client {
	dialer := &net.Dialer{Timeout: fetchTime, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !public(at.Addr()) {
			return fmt.Errorf("the address is not public")
		}
		return nil
	}}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableCompression: true, DisableKeepAlives: true},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > mostRedirect {
				return fmt.Errorf("more than %d redirects", mostRedirect)
			}
			return s.allows(req.URL)
		},
	}
}

// hidden are networks that no request may reach through a worker, besides those
// that netip has names for.
var hidden = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"),
}

// public reports whether an address is of the internet at large.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	return !slices.ContainsFunc(hidden, func(p netip.Prefix) bool { return p.Contains(a) })
}
