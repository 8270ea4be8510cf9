package extend

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"roundhouse/plugins/pb"
)

// Pass is one request's way through the filters; nil where there are none.
type Pass struct {
	set *Set
	id  string
	met []filter // those whose Begin let the request pass

	// What the filters said.
	Body     []byte      // replaces the body; nil: unchanged
	Headers  [][2]string // to the worker; an empty value removes
	Priority string
	Route    string
	Key      string
}

// Refusal is a filter's answer to a request that it does not let pass, or the
// door's where a filter failed that must not.
type Refusal struct {
	Status  int
	Type    string
	Message string
}

// Request is what Begin shows to the filters.
type Request struct {
	ID, Method, Path, Client string
	Headers                  func(yield func(name, value string) bool)
	Body                     []byte
}

// Begin shows a request to the filters, one after the other: each sees the body
// that those before it left.
func (s *Set) Begin(r *Request) (*Pass, *Refusal) {
	if s == nil || len(s.filters) == 0 {
		return nil, nil
	}
	p := &Pass{set: s, id: r.ID}
	req := &pb.BeginRequest{Id: r.ID, Method: r.Method, Path: r.Path, Client: r.Client}
	for name, value := range r.Headers {
		req.Headers = append(req.Headers, &pb.Header{Name: strings.ToLower(name), Value: value})
	}
	body := r.Body
	for _, f := range s.filters {
		req.Body = nil
		if f.plugin.Wants().GetBody() {
			req.Body = body
		}
		var res *pb.BeginResponse
		err := f.call(func(ctx context.Context, c pb.FilterClient) (err error) {
			res, err = c.Begin(ctx, req)
			return err
		})
		if err != nil {
			if f.open {
				continue
			}
			p.End(&Outcome{Status: 503, Outcome: "refused"})
			return nil, failed(f.name)
		}
		if d := res.GetDeny(); d != nil {
			p.End(&Outcome{Status: int(d.GetStatus()), Outcome: "refused"})
			return nil, denied(d)
		}
		p.met = append(p.met, f)
		if body = p.take(res, body); p.Body != nil {
			body = p.Body
		}
	}
	return p, nil
}

// take keeps what a filter changed and returns the body as it is now.
func (p *Pass) take(res *pb.BeginResponse, body []byte) []byte {
	if res.Body != nil {
		p.Body = res.GetBody()
		body = p.Body
	}
	for _, h := range res.GetSetHeaders() {
		if allowed(h.GetName(), h.GetValue()) {
			p.Headers = append(p.Headers, [2]string{strings.ToLower(h.GetName()), h.GetValue()})
		}
	}
	p.Priority = or(res.GetPriority(), p.Priority)
	p.Route = or(res.GetRoute(), p.Route)
	p.Key = or(res.GetKey(), p.Key)
	return body
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// call asks a filter within the plugin's bounds.
func (f filter) call(fn func(ctx context.Context, c pb.FilterClient) error) error {
	return f.plugin.Call(context.Background(), func(ctx context.Context, conn *grpc.ClientConn) error {
		return fn(ctx, pb.NewFilterClient(conn))
	})
}

// framing are the fields that say where a message ends or who speaks: a filter may
// not touch them.
var framing = []string{"connection", "content-length", "transfer-encoding", "host", "te", "trailer", "upgrade", "keep-alive", "expect", "content-type"}

// allowed reports whether a filter may set a field to a value.
func allowed(name, value string) bool {
	if name == "" || len(name) > 100 || len(value) > 8192 || slices.Contains(framing, strings.ToLower(name)) {
		return false
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func failed(name string) *Refusal {
	return &Refusal{503, "service_unavailable", fmt.Sprintf("the filter %q that checks requests is not available", name)}
}

func denied(d *pb.Deny) *Refusal {
	r := &Refusal{int(d.GetStatus()), d.GetType(), d.GetMessage()}
	if r.Status < 400 || r.Status > 599 {
		r.Status = 403
	}
	if r.Type == "" {
		r.Type = "invalid_request_error"
	}
	return r
}

// Respond shows the beginning of the answer and returns the fields that the filters
// set on the way to the client. What fails changes nothing: the answer exists.
func (p *Pass) Respond(status int, worker string) [][2]string {
	if p == nil {
		return nil
	}
	var set [][2]string
	for _, f := range p.met {
		if !f.plugin.Wants().GetRespond() {
			continue
		}
		f.call(func(ctx context.Context, c pb.FilterClient) error {
			res, err := c.Respond(ctx, &pb.RespondRequest{Id: p.id, Status: int32(status), Worker: worker})
			for _, h := range res.GetSetHeaders() {
				if allowed(h.GetName(), h.GetValue()) {
					set = append(set, [2]string{strings.ToLower(h.GetName()), h.GetValue()})
				}
			}
			return err
		})
	}
	return set
}

// WantsChunks reports whether a filter rewrites answers.
func (p *Pass) WantsChunks() bool {
	if p == nil {
		return false
	}
	return slices.ContainsFunc(p.met, func(f filter) bool { return f.plugin.Wants().GetChunks() })
}

// mostChunk bounds what one call carries.
const mostChunk = 1 << 20

// Chunk lets the filters rewrite whole events, or the whole of an answer that does
// not stream. An error means that a filter failed whose failure closes.
func (p *Pass) Chunk(data []byte, last bool) ([]byte, *Refusal) {
	for _, f := range p.met {
		if !f.plugin.Wants().GetChunks() {
			continue
		}
		if len(data) > mostChunk {
			if f.open {
				continue
			}
			return nil, failed(f.name)
		}
		var res *pb.ChunkResponse
		err := f.call(func(ctx context.Context, c pb.FilterClient) (err error) {
			res, err = c.Chunk(ctx, &pb.ChunkRequest{Id: p.id, Data: data, Last: last})
			return err
		})
		switch {
		case err == nil:
			data = res.GetData()
		case !f.open:
			return nil, failed(f.name)
		}
	}
	return data, nil
}
