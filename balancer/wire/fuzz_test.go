package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// FuzzCheckHead: what the check lets through, Go's own parser understands, and
// sees the same framing in it.
func FuzzCheckHead(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST /v1/x HTTP/1.1\r\nHost: a:80\r\nContent-Length: 5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: [::1]\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", "GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		end := HeadEnd(b)
		if end == 0 {
			CheckPartial(b)
			return
		}
		b = b[:end]
		if CheckPartial(b) != nil {
			return
		}
		h, refused := CheckHead(b)
		if refused != nil {
			return
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			t.Fatalf("let through what net/http refuses (%v): %q", err, b)
		}
		length := req.ContentLength
		if h.Chunked != (len(req.TransferEncoding) > 0) || !h.Chunked && length != h.Length {
			t.Fatalf("framing differs: %+v, net/http length %d coding %v: %q", h, length, req.TransferEncoding, b)
		}
	})
}

// FuzzPeekBody: what the scanner lets through is JSON to encoding/json too,
// and the fields it read are those that encoding/json reads.
func FuzzPeekBody(f *testing.F) {
	for _, s := range []string{
		`{"model":"a","stream":true,"max_tokens":5,"messages":[{"role":"user","content":"hé\n\u00e9\ud83d\ude00"}]}`, `{}`, ` { "n" : 2 } `,
		`{"a":[1,-2.5e+3,null,true,{"b":[]}]}`, `{"model":"\u0061"}`, `{"stream_options":{"include_usage":true}}`, `{"x":"` + strings.Repeat("long ", 50) + `\\"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Peek
		if PeekBody(b, &p) != nil {
			return
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatalf("let through what encoding/json refuses (%v): %q", err, b)
		}
		var model string
		if raw, ok := m["model"]; ok && json.Unmarshal(raw, &model) == nil && model != p.Model {
			t.Fatalf("model %q, encoding/json reads %q", p.Model, model)
		}
		if raw, ok := m["stream"]; ok && p.Stream != (string(raw) == "true") {
			t.Fatalf("stream %v, encoding/json reads %s", p.Stream, raw)
		}
		if !p.Empty && (p.Open <= 0 || b[p.Open-1] != '{') {
			t.Fatalf("Open is %d", p.Open)
		}
	})
}

// FuzzEvents: cutting a stream into events loses and adds nothing, however
// the bytes arrive.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{
		"data: a\n\ndata: b\n\n", "data: a\r\n\r\n: ping\n\ndata: b\r\rdata", "event: x\ndata: 1\ndata: 2\n\n", "\n\n\n", "\r\n\r\n",
		`data: {"choices":[{"token_ids":[1,2],"delta":{"content":"\"token_ids\":[3]"}}]}` + "\n\n",
	} {
		f.Add([]byte(s), byte(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, at byte) {
		whole := split(b)
		cut := min(int(at), len(b))
		var partial []byte
		var pieces [][]byte
		for _, part := range [][]byte{b[:cut], b[cut:]} {
			partial = append(partial, part...)
			for {
				n := NextEvent(partial)
				if n == 0 {
					break
				}
				pieces = append(pieces, append([]byte(nil), partial[:n]...))
				partial = partial[n:]
			}
		}
		if !bytes.Equal(bytes.Join(whole, nil), b[:len(bytes.Join(whole, nil))]) {
			t.Fatal("events are not the front of the stream")
		}
		if got, want := len(bytes.Join(pieces, nil)), len(bytes.Join(whole, nil)); got != want {
			t.Fatalf("in two pieces %d bytes make events, at once %d: %q", got, want, b)
		}
		for _, e := range whole {
			EventData(e)
			CutField(append([]byte(nil), e...), `"token_ids"`, func(v []byte) { Ints(nil, v) })
		}
	})
}

func split(b []byte) (events [][]byte) {
	for {
		n := NextEvent(b)
		if n == 0 {
			return events
		}
		events = append(events, b[:n])
		b = b[n:]
	}
}

// FuzzChunks: a body in chunks is what net/http makes of it, or refused.
func FuzzChunks(f *testing.F) {
	for _, s := range []string{"5\r\nhello\r\n0\r\n\r\n", "1;a=b\r\nx\r\n0\r\nT: 1\r\n\r\n", "0\r\n\r\n", "A\r\n0123456789\r\n0\r\n\r\nmore"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var walk, decode Chunks
		n, used, err := walk.Walk(b)
		c := append([]byte(nil), b...)
		m, used2, err2 := decode.Decode(c)
		if n != m || used != used2 || (err == nil) != (err2 == nil) || walk.Done() != decode.Done() {
			t.Fatalf("Walk and Decode differ on %q", b)
		}
	})
}

func TestCutField(t *testing.T) {
	f := func(in, want, value string) {
		t.Helper()
		got := ""
		out, found := CutField([]byte(in), `"token_ids"`, func(v []byte) { got = string(v) })
		if string(out) != want || got != value || found != (value != "") {
			t.Errorf("%s: got %s, value %s", in, out, got)
		}
	}
	f(`{"a":1,"token_ids":[1,2]}`, `{"a":1}`, `[1,2]`)
	f(`{"token_ids":[1,2],"a":1}`, `{"a":1}`, `[1,2]`)
	f(`{"token_ids":null}`, `{}`, `null`)
	f(`{"a":"\"token_ids\":[3]","token_ids" : [4] , "b":2}`, `{"a":"\"token_ids\":[3]", "b":2}`, `[4]`)
	f(`{"prompt_token_ids":[1]}`, `{"prompt_token_ids":[1]}`, ``)
	f(`{"text":"token_ids"}`, `{"text":"token_ids"}`, ``)
}

// TestFieldOfAnyBytes finds fields of an event although its text is not UTF-8, as
// where an engine cuts a character in two.
func TestFieldOfAnyBytes(t *testing.T) {
	const event = `{"choices":[{"text":"` + "caf\xc3" + `","token_ids":[7]}]}`
	if v, ok := Field([]byte(event), `"text"`); !ok || string(v) != "\"caf\xc3\"" {
		t.Errorf("its text: %q %t", v, ok)
	}
	if out, ok := CutField([]byte(event), `"choices"`, nil); !ok || string(out) != "{}" {
		t.Errorf("without its choices: %q %t", out, ok)
	}
}
