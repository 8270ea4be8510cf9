// Package gatewaytest speaks Envoy's external processing protocol as gateways do, for
// the tests of pickers. It reads and writes the protocol by itself, so that a mistake in
// how a picker does is seen.
package gatewaytest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// The ways in which a body goes, as the protocol numbers them.
const (
	None, Streamed, Buffered, Partial, Duplex = 0, 1, 2, 3, 4
)

// raw passes messages as they are.
type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (raw) Name() string { return "proto" }

// Dial makes a gateway's connection to a picker.
func Dial(t testing.TB, address string, secure bool) *grpc.ClientConn {
	t.Helper()
	creds := insecure.NewCredentials()
	if secure {
		creds = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	c, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Call is one request on its way through a gateway.
type Call struct {
	t     testing.TB
	rpc   grpc.ClientStream
	Leave context.CancelFunc
}

// Begin asks the picker about a request.
func Begin(t testing.TB, c *grpc.ClientConn) *Call {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	t.Cleanup(leave)
	rpc, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/envoy.service.ext_proc.v3.ExternalProcessor/Process", grpc.ForceCodecV2(raw{}))
	if err != nil {
		t.Fatal(err)
	}
	return &Call{t, rpc, leave}
}

func (c *Call) send(b []byte) {
	c.t.Helper()
	if err := c.rpc.SendMsg(b); err != nil && err != io.EOF {
		c.t.Fatal(err)
	}
}

// Head is what a gateway says with a head.
type Head struct {
	Fields   [][2]string
	End      bool
	Old      bool // values stand in the older field
	Silent   bool // it does not say how bodies go
	Request  int  // how bodies go
	Response int
	Subset   []string // narrows the choice
	Narrowed bool
	Served   string // who answered
}

// Post is the head of a request for a path.
func Post(path string, more ...string) Head {
	h := Head{Request: Duplex, Response: Duplex, Fields: [][2]string{{":method", "POST"}, {":path", path}, {"content-type", "application/json"}}}
	for i := 0; i < len(more); i += 2 {
		h.Fields = append(h.Fields, [2]string{more[i], more[i+1]})
	}
	return h
}

func bytesOf(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func numberOf(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func entry(key string, value []byte) []byte {
	return bytesOf(bytesOf(nil, 1, []byte(key)), 2, value)
}

func (h Head) encode(n protowire.Number) []byte {
	var fields []byte
	for _, f := range h.Fields {
		at := protowire.Number(3)
		if h.Old {
			at = 2
		}
		fields = bytesOf(fields, 1, bytesOf(bytesOf(nil, 1, []byte(f[0])), at, []byte(f[1])))
	}
	head := bytesOf(nil, 1, fields)
	if h.End {
		head = numberOf(head, 3, 1)
	}
	b := bytesOf(nil, n, head)
	var metadata []byte
	if h.Narrowed {
		var values []byte
		for _, s := range h.Subset {
			values = bytesOf(values, 1, bytesOf(nil, 3, []byte(s)))
		}
		there := bytesOf(nil, 1, entry("x-gateway-destination-endpoint-subset", bytesOf(nil, 6, values)))
		metadata = bytesOf(metadata, 1, entry("envoy.lb.subset_hint", there))
	}
	if h.Served != "" {
		there := bytesOf(nil, 1, entry("x-gateway-destination-endpoint-served", bytesOf(nil, 3, []byte(h.Served))))
		metadata = bytesOf(metadata, 1, entry("envoy.lb", there))
	}
	if metadata != nil {
		b = bytesOf(b, 8, metadata)
	}
	if n == 2 && !h.Silent {
		b = bytesOf(b, 11, numberOf(numberOf(nil, 1, uint64(h.Request)), 2, uint64(h.Response)))
	}
	return b
}

// Request gives the head of the request.
func (c *Call) Request(h Head) { c.t.Helper(); c.send(h.encode(2)) }

// Answer gives the head of the answer.
func (c *Call) Answer(status int, ctype string, h Head) {
	c.t.Helper()
	h.Fields = append(h.Fields, [2]string{":status", fmt.Sprint(status)}, [2]string{"content-type", ctype})
	c.send(h.encode(3))
}

func (c *Call) body(n protowire.Number, text string, end bool) {
	c.t.Helper()
	b := bytesOf(nil, 1, []byte(text))
	if end {
		b = numberOf(b, 2, 1)
	}
	c.send(bytesOf(nil, n, b))
}

// Body gives a piece of the request's body.
func (c *Call) Body(text string, end bool) { c.t.Helper(); c.body(4, text, end) }

// AnswerBody gives a piece of the answer's body.
func (c *Call) AnswerBody(text string, end bool) { c.t.Helper(); c.body(5, text, end) }

// Trailers gives the trailers of the request.
func (c *Call) Trailers() { c.t.Helper(); c.send(bytesOf(nil, 6, nil)) }

// Raw sends bytes as they are.
func (c *Call) Raw(b []byte) { c.t.Helper(); c.send(b) }

// HalfClose says that there is no more to come.
func (c *Call) HalfClose() { c.rpc.CloseSend() }

// Said is what the picker says.
type Said struct {
	To       int // what it answers, by its number among responses; 7: the request itself
	Set      map[string]string
	Remove   []string
	Metadata string // the endpoint in the dynamic metadata
	Clear    bool
	Body     string
	Streamed bool // Body is a piece
	Replaced bool // Body stands for the whole
	End      bool
	Status   int
}

// Next reads what the picker says; io.EOF: it has closed its stream in order.
func (c *Call) Next() (*Said, error) {
	var b []byte
	if err := c.rpc.RecvMsg(&b); err != nil {
		return nil, err
	}
	s := &Said{Set: map[string]string{}}
	each(c.t, b, func(n protowire.Number, v []byte, _ uint64) {
		switch {
		case n == 7:
			s.To = 7
			s.immediate(c.t, v)
		case n == 8:
			s.Metadata = metadataOf(c.t, v)
		case n <= 6:
			s.To = int(n)
			if n < 5 {
				each(c.t, v, func(_ protowire.Number, v []byte, _ uint64) { s.common(c.t, v) })
			}
		}
	})
	return s, nil
}

// Must is Next where the picker must say something.
func (c *Call) Must() *Said {
	c.t.Helper()
	s, err := c.Next()
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// each gives every field of a message.
func each(t testing.TB, b []byte, f func(n protowire.Number, v []byte, number uint64)) {
	t.Helper()
	for len(b) > 0 {
		n, typ, used := protowire.ConsumeTag(b)
		if used < 0 {
			t.Fatalf("the picker's message is malformed: %x", b)
		}
		b = b[used:]
		var v []byte
		var number uint64
		if typ == protowire.BytesType {
			v, used = protowire.ConsumeBytes(b)
		} else {
			number, used = protowire.ConsumeVarint(b)
		}
		if used < 0 {
			t.Fatalf("the picker's message is malformed: %x", b)
		}
		b = b[used:]
		f(n, v, number)
	}
}

func (s *Said) common(t testing.TB, b []byte) {
	each(t, b, func(n protowire.Number, v []byte, number uint64) {
		switch n {
		case 2:
			s.mutation(t, v)
		case 3:
			each(t, v, func(n protowire.Number, v []byte, _ uint64) {
				if n == 1 {
					s.Body, s.Replaced = string(v), true
					return
				}
				s.Streamed = true
				each(t, v, func(n protowire.Number, v []byte, number uint64) {
					if n == 1 {
						s.Body = string(v)
					} else {
						s.End = number == 1
					}
				})
			})
		case 5:
			s.Clear = number == 1
		}
	})
}

func (s *Said) mutation(t testing.TB, b []byte) {
	each(t, b, func(n protowire.Number, v []byte, _ uint64) {
		if n == 2 {
			s.Remove = append(s.Remove, string(v))
			return
		}
		each(t, v, func(n protowire.Number, v []byte, number uint64) {
			if n != 1 {
				if number != 2 {
					t.Error("a field is not set in place of those of its name")
				}
				return
			}
			var field [4]string
			each(t, v, func(n protowire.Number, v []byte, _ uint64) { field[n] = string(v) })
			s.Set[field[1]] = field[3]
		})
	})
}

func (s *Said) immediate(t testing.TB, b []byte) {
	each(t, b, func(n protowire.Number, v []byte, _ uint64) {
		switch n {
		case 1:
			each(t, v, func(_ protowire.Number, _ []byte, number uint64) { s.Status = int(number) })
		case 2:
			s.mutation(t, v)
		case 3:
			s.Body = string(v)
		}
	})
}

// metadataOf is the endpoint that dynamic metadata name.
func metadataOf(t testing.TB, b []byte) (endpoint string) {
	deep := func(b []byte, key string, value protowire.Number) (out []byte) {
		each(t, b, func(_ protowire.Number, v []byte, _ uint64) {
			var k string
			var inner []byte
			each(t, v, func(n protowire.Number, v []byte, _ uint64) {
				if n == 1 {
					k = string(v)
				} else {
					inner = v
				}
			})
			if k == key {
				each(t, inner, func(n protowire.Number, v []byte, _ uint64) {
					if n == value {
						out = v
					}
				})
			}
		})
		return out
	}
	return string(deep(deep(b, "envoy.lb", 5), "x-gateway-destination-endpoint", 3))
}
