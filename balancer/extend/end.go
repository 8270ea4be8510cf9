package extend

import (
	"context"

	"roundhouse/plugins/pb"
)

// mostEnds is how many ends may wait to be told; what comes on top is not told, so
// that a slow filter never holds a request.
const mostEnds = 4096

// Outcome is how a request ended.
type Outcome struct {
	Status                    int
	Outcome, Worker           string
	Prompt, Cached, Generated int64
	Queue, TTFT, Duration     float64 // seconds
}

// end is one End to be told.
type end struct {
	to  []filter
	req *pb.EndRequest
}

// End tells the filters how the request ended. It does not wait.
func (p *Pass) End(o *Outcome) {
	if p == nil || len(p.met) == 0 {
		return
	}
	e := end{p.met, &pb.EndRequest{
		Id: p.id, Status: int32(o.Status), Outcome: o.Outcome, Worker: o.Worker,
		PromptTokens: o.Prompt, CachedTokens: o.Cached, GeneratedTokens: o.Generated,
		QueueSeconds: o.Queue, TtftSeconds: o.TTFT, DurationSeconds: o.Duration,
	}}
	select {
	case p.set.ends <- e:
	default:
		p.set.log.Warn("filters are too slow; the end of a request was not told", "request", p.id)
	}
}

// tellEnds tells ends in their order until Close.
func (s *Set) tellEnds() {
	defer close(s.ended)
	for e := range s.ends {
		for _, f := range e.to {
			if !f.plugin.Wants().GetEnd() {
				continue
			}
			f.call(func(ctx context.Context, c pb.FilterClient) error {
				_, err := c.End(ctx, e.req)
				return err
			})
		}
	}
}
