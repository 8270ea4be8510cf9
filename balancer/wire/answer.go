package wire

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// ErrAnswer is returned for a worker's answer that is not framed as RFC 9112
// says: it is not passed on, and its connection is not used again.
var ErrAnswer = errors.New("the worker's answer is not valid HTTP")

// Answer is the head of a worker's answer.
type Answer struct {
	Status      int
	Length      int64 // -1: not given
	Chunked     bool
	Close       bool // the connection ends with this answer
	EventStream bool

	// The fields that are passed on; they lie in the buffer that was parsed.
	ContentType, Disposition, RetryAfter []byte
}

// Bodiless reports whether the answer has no body, whatever its head says.
func (a *Answer) Bodiless() bool { return a.Status == 204 || a.Status == 304 }

// JSON reports whether the body is said to be JSON, as all that an engine refuses is.
func (a *Answer) JSON() bool {
	const json = "application/json"
	return len(a.ContentType) >= len(json) && strings.EqualFold(string(a.ContentType[:len(json)]), json)
}

// ParseAnswer reads the head of an answer, the empty line included.
func ParseAnswer(head []byte, a *Answer) error {
	*a = Answer{Length: -1}
	if len(head) < 16 || string(head[:7]) != "HTTP/1." || head[8] != ' ' || head[7] != '1' && head[7] != '0' {
		return ErrAnswer
	}
	a.Close = head[7] == '0'
	status, err := strconv.Atoi(string(head[9:12]))
	if err != nil || status < 100 || head[12] != ' ' && head[12] != '\r' {
		return ErrAnswer
	}
	a.Status = status
	eol := bytes.IndexByte(head, '\n')
	rest := head[eol+1:]
	for len(rest) > 2 {
		n := bytes.IndexByte(rest, '\n')
		if n < 1 || rest[n-1] != '\r' {
			return ErrAnswer
		}
		if err := a.field(rest[:n-1]); err != nil {
			return err
		}
		rest = rest[n+1:]
	}
	if a.Chunked && a.Length >= 0 {
		return ErrAnswer
	}
	return nil
}

func (a *Answer) field(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || bytes.IndexByte(line, 0) >= 0 || bytes.IndexByte(line, '\r') >= 0 {
		return ErrAnswer
	}
	name, value := line[:colon], bytes.Trim(line[colon+1:], " \t")
	switch {
	case equalFold(name, "content-length"):
		n, err := strconv.ParseInt(string(value), 10, 63)
		if err != nil || n < 0 || value[0] == '+' || a.Length >= 0 && a.Length != n {
			return ErrAnswer
		}
		a.Length = n
	case equalFold(name, "transfer-encoding"):
		if !equalFold(value, "chunked") || a.Chunked {
			return ErrAnswer
		}
		a.Chunked = true
	case equalFold(name, "connection"):
		a.Close = a.Close || equalFold(value, "close")
	case equalFold(name, "content-type"):
		a.ContentType = value
		a.EventStream = len(value) >= 17 && equalFold(value[:17], "text/event-stream")
	case equalFold(name, "content-disposition"):
		a.Disposition = value
	case equalFold(name, "retry-after"):
		a.RetryAfter = value
	}
	return nil
}
