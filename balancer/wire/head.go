package wire

import (
	"bytes"
	"fmt"
)

// The bounds of a request's head.
const (
	MaxRequestLine = 8 << 10
	MaxFields      = 100
	MaxField       = 16 << 10
)

// HeadError refuses a request's head.
type HeadError struct {
	Status int
	What   string
}

// Error implements error.
func (e *HeadError) Error() string { return e.What }

func bad(what string) *HeadError { return &HeadError{Status: 400, What: what} }

// Head is what a request's head says of its framing, and what else of it the
// door reads. Its bytes lie in the buffer that was checked.
type Head struct {
	Method, Path, Query []byte
	Seen                Seen

	Length   int64 // of the body; 0 where there is none
	Chunked  bool
	HTTP10   bool
	Continue bool // the client waits for 100 Continue
}

// HeadEnd returns the length of the head at the front of b, the empty line
// included, or 0 while it is not whole.
func HeadEnd(b []byte) int {
	if at := bytes.Index(b, []byte("\r\n\r\n")); at >= 0 {
		return at + 4
	}
	return 0
}

// CheckPartial refuses the front of a head that no further byte can mend.
func CheckPartial(b []byte) *HeadError {
	for i := 0; ; {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			break
		}
		if i += n; i == 0 || b[i-1] != '\r' {
			return bad("a line of the head ends without a carriage return")
		}
		i++
	}
	if bytes.IndexByte(b, '\r') < 0 {
		if len(b) > MaxRequestLine {
			return &HeadError{414, "the request line is too long"}
		}
		if len(b) > 0 && !isToken(b[0]) {
			return bad("this is not an HTTP request")
		}
	}
	return nil
}

// CheckHead reads the head of a request, the empty line included. It refuses
// whatever two readers could take differently: what passes here means the
// same to every HTTP/1.1 server.
func CheckHead(head []byte) (Head, *HeadError) {
	var h Head
	eol := bytes.IndexByte(head, '\r')
	if err := h.requestLine(head[:eol]); err != nil {
		return h, err
	}
	f := fields{}
	rest := head[eol:]
	for {
		if rest[0] != '\r' || rest[1] != '\n' {
			return h, bad("a line of the head does not end in CR LF")
		}
		if rest = rest[2:]; len(rest) == 2 {
			break
		}
		n := bytes.IndexByte(rest, '\r')
		if err := f.take(rest[:n], &h); err != nil {
			return h, err
		}
		rest = rest[n:]
	}
	return h, f.settle(&h, head)
}

// requestLine checks "METHOD SP target SP HTTP/1.x". The target is a path, or a whole
// URL, which proxies send and every server must take: its host is no more to us than
// the field Host is.
func (h *Head) requestLine(line []byte) *HeadError {
	if len(line) > MaxRequestLine {
		return &HeadError{414, "the request line is too long"}
	}
	sp := bytes.IndexByte(line, ' ')
	if sp <= 0 {
		return bad("the request line has no method")
	}
	for _, c := range line[:sp] {
		if !isToken(c) {
			return bad("the method is not a token")
		}
	}
	target := line[sp+1:]
	end := bytes.LastIndexByte(target, ' ')
	if end < 0 {
		return bad("the request line has no version")
	}
	version := string(target[end+1:])
	switch {
	case version == "HTTP/1.1":
	case version == "HTTP/1.0":
		h.HTTP10 = true
	case len(version) == 8 && version[:5] == "HTTP/":
		return &HeadError{505, "only HTTP/1.1 and HTTP/1.0 are spoken here"}
	default:
		return bad("the request line has no version")
	}
	target = target[:end]
	switch string(line[:sp]) {
	case "GET", "HEAD", "POST", "DELETE", "OPTIONS":
	case "PUT", "PATCH":
		return &HeadError{405, "this method is not served here"}
	case "CONNECT", "TRACE":
		return &HeadError{405, "this method is not served here"}
	default:
		return &HeadError{501, "this method is not known here"}
	}
	if host, path, ok := AbsoluteForm(target); ok {
		if err := checkHost(host); err != nil || len(host) == 0 {
			return bad("the request target names no host")
		}
		target = path
	}
	if len(target) == 0 || target[0] != '/' {
		return bad("the request target must be a path or a URL with one")
	}
	h.Method, h.Path = line[:sp], target
	if q := bytes.IndexByte(target, '?'); q >= 0 {
		h.Path, h.Query = target[:q], target[q+1:]
	}
	for _, c := range target {
		if c <= ' ' || c >= 0x7f || c == '#' || c == '\\' || c == '"' || c == '<' || c == '>' || c == '{' || c == '}' || c == '`' || c == '|' || c == '^' {
			return bad("the request target holds a character that a URL may not")
		}
	}
	return nil
}

// AbsoluteForm parts a target that is a whole URL of HTTP; ok is false for others. The
// path of a URL without one is "/".
func AbsoluteForm(target []byte) (host, path []byte, ok bool) {
	at := bytes.Index(target[:min(len(target), len("https://"))], []byte("://"))
	if at < 0 || !equalFold(target[:at], "http") && !equalFold(target[:at], "https") {
		return nil, nil, false
	}
	host = target[at+3:]
	if end := bytes.IndexAny(host, "/?"); end < 0 {
		path = slash
	} else if host, path = host[:end], host[end:]; path[0] == '?' {
		path = append(slash[:1:1], path...)
	}
	return host, path, true
}

// slash is the path of a URL that has none.
var slash = []byte("/")

// fields gathers what the fields of one head say of its framing.
type fields struct {
	n                int
	lengths, codings int
	hosts, auths     int
}

// take checks one field line.
func (f *fields) take(line []byte, h *Head) *HeadError {
	if f.n++; f.n > MaxFields {
		return &HeadError{431, fmt.Sprintf("the head has more than %d fields", MaxFields)}
	}
	if len(line) > MaxField {
		return &HeadError{431, "a field of the head is too long"}
	}
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return bad("a line of the head is not a field")
	}
	name, value := line[:colon], line[colon+1:]
	underscore := false
	for _, c := range name {
		if !isToken(c) {
			return bad("a field's name is not a token")
		}
		underscore = underscore || c == '_'
	}
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return bad("a field's value holds a control character")
		}
	}
	value = bytes.Trim(value, " \t")
	if underscore {
		return nil // ignored, as nginx does: some servers take it for the name with a dash
	}
	switch {
	case equalFold(name, "content-length"):
		f.lengths++
		return h.length(value)
	case equalFold(name, "transfer-encoding"):
		f.codings++
		if !equalFold(value, "chunked") {
			return bad("the transfer coding must be chunked")
		}
		h.Chunked = true
	case equalFold(name, "host"):
		f.hosts++
		return checkHost(value)
	case equalFold(name, "authorization"):
		h.Seen.Take(name, value)
		if f.auths++; f.auths > 1 {
			return bad("the field Authorization is given twice")
		}
	case equalFold(name, "expect"):
		if !equalFold(value, "100-continue") {
			return &HeadError{417, "only 100-continue can be expected"}
		}
		h.Continue = true
	default:
		h.Seen.Take(name, value)
	}
	return nil
}

func (h *Head) length(value []byte) *HeadError {
	if len(value) == 0 || len(value) > 18 {
		return bad("the field Content-Length is not a number")
	}
	h.Length = 0
	for _, c := range value {
		if c < '0' || c > '9' {
			return bad("the field Content-Length is not a number")
		}
		h.Length = h.Length*10 + int64(c-'0')
	}
	return nil
}

// settle checks what only the whole head shows.
func (f *fields) settle(h *Head, head []byte) *HeadError {
	switch {
	case f.lengths > 1:
		return bad("the field Content-Length is given twice")
	case f.codings > 1:
		return bad("the field Transfer-Encoding is given twice")
	case f.lengths > 0 && f.codings > 0:
		return bad("Content-Length and Transfer-Encoding exclude each other")
	case f.codings > 0 && h.HTTP10:
		return bad("HTTP/1.0 has no transfer codings")
	case f.hosts > 1:
		return bad("the field Host is given twice")
	case f.hosts == 0 && !h.HTTP10:
		return bad("the field Host is missing")
	}
	if head[0] == 'G' || head[0] == 'H' { // GET, HEAD
		if h.Length > 0 || h.Chunked {
			return bad("this method takes no body")
		}
	}
	return nil
}

// checkHost accepts a name or an address with an optional port, and nothing
// that another reader could take for a path, a user or a second host.
func checkHost(host []byte) *HeadError {
	if len(host) == 0 || len(host) > 255 {
		return bad("the field Host is not a host")
	}
	if host[0] == '[' {
		end := bytes.IndexByte(host, ']')
		if end < 0 {
			return bad("the field Host is not a host")
		}
		for _, c := range host[1:end] {
			if unhex[c] < 0 && c != ':' && c != '.' {
				return bad("the field Host is not a host")
			}
		}
		return checkPort(host[end+1:])
	}
	name, port := host, []byte(nil)
	if at := bytes.IndexByte(host, ':'); at >= 0 {
		name, port = host[:at], host[at:]
	}
	for _, c := range name {
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && c != '.' && c != '-' && c != '_' {
			return bad("the field Host is not a host")
		}
	}
	return checkPort(port)
}

func checkPort(port []byte) *HeadError {
	if len(port) == 0 {
		return nil
	}
	if port[0] != ':' || len(port) > 6 {
		return bad("the field Host is not a host")
	}
	for _, c := range port[1:] {
		if c < '0' || c > '9' {
			return bad("the field Host is not a host")
		}
	}
	return nil
}

// CheckTrailer refuses a trailer that names what only a head may.
func CheckTrailer(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return ErrChunk
	}
	for _, c := range line[:colon] {
		if !isToken(c) {
			return ErrChunk
		}
	}
	for _, name := range [...]string{"content-length", "transfer-encoding", "host", "authorization", "content-type", "content-encoding", "trailer", "connection"} {
		if equalFold(line[:colon], name) {
			return ErrChunk
		}
	}
	return nil
}

func isToken(c byte) bool { return tokens[c] }

// tokens marks the characters of a token, as RFC 9110 lists them.
var tokens = func() (t [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] = true
	}
	return t
}()

// equalFold compares b with lower, which is in lower case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
