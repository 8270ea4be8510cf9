package extend

import (
	"context"
	"strings"

	"google.golang.org/grpc"

	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
)

// PolicyName is the plugin that a pool's policy names, if it names one.
func PolicyName(policy string) (name string, ok bool) { return strings.CutPrefix(policy, "plugin:") }

// Order asks a policy plugin for the order of the candidates. Nil means that the
// pool's own policy decides: the plugin failed, or named none of them.
func (s *Set) Order(name string, req *pb.Request, candidates []*pb.Candidate) (workers []string) {
	if s == nil {
		return nil
	}
	p := s.host.Get(name)
	if p == nil || p.Spec().Kind != sdk.KindPolicy {
		return nil
	}
	p.Call(context.Background(), func(ctx context.Context, conn *grpc.ClientConn) error {
		res, err := pb.NewPolicyClient(conn).Order(ctx, &pb.OrderRequest{Request: req, Candidates: candidates})
		workers = res.GetWorkers()
		return err
	})
	return workers
}
