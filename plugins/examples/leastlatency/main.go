// Leastlatency is a routing policy: the worker whose first token is predicted
// soonest, and among equals the one that generates fastest.
package main

import (
	"cmp"
	"context"
	"slices"

	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
)

type leastLatency struct{}

func (leastLatency) Order(_ context.Context, req *pb.OrderRequest) ([]string, error) {
	candidates := slices.Clone(req.GetCandidates())
	slices.SortStableFunc(candidates, func(a, b *pb.Candidate) int {
		return cmp.Or(
			cmp.Compare(a.GetPredictedTtftSeconds(), b.GetPredictedTtftSeconds()),
			cmp.Compare(b.GetTokensPerSecond(), a.GetTokensPerSecond()),
			cmp.Compare(a.GetInFlight(), b.GetInFlight()),
		)
	})
	names := make([]string, len(candidates))
	for i, c := range candidates {
		names[i] = c.GetWorker()
	}
	return names, nil
}

func main() { sdk.ServePolicy(leastLatency{}) }
