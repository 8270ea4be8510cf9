package live

import (
	"roundhouse/balancer/control"
	"roundhouse/configs/workerid"
)

// counter turns what doors have counted since they began into what happened since the
// last look. A door that is new has counted from nothing, except at the very first look.
type counter struct {
	begun   bool
	pools   map[[2]string]control.PoolState // by door and pool
	workers map[[2]string]WorkerCount       // by door and worker
}

func newCounter() counter {
	return counter{pools: map[[2]string]control.PoolState{}, workers: map[[2]string]WorkerCount{}}
}

// workerSums is what happened at one worker.
type workerSums struct{ failed, tokens int64 }

// since is how much a count has grown: it falls when a process begins anew.
func since(now, before int64) int64 {
	if now < before {
		return now
	}
	return now - before
}

// take takes a look, and returns what happened by pool and by worker.
func (c *counter) take(counts []Counts) (map[string]*sums, map[string]*workerSums) {
	pools, workers := map[string]*sums{}, map[string]*workerSums{}
	of := func(pool string) *sums {
		if pools[pool] == nil {
			pools[pool] = &sums{}
		}
		return pools[pool]
	}
	seenPools, seenWorkers := map[[2]string]control.PoolState{}, map[[2]string]WorkerCount{}
	for _, d := range counts {
		for _, now := range d.Pools {
			key := [2]string{d.Door, now.Name}
			was, known := c.pools[key]
			seenPools[key] = now
			of(now.Name).waiting += now.Waiting
			if known || c.begun {
				of(now.Name).count(&now, &was)
			}
		}
		for _, now := range d.Workers {
			key := [2]string{d.Door, now.ID}
			was, known := c.workers[key]
			seenWorkers[key] = now
			if !known && !c.begun {
				continue
			}
			if was.Generation != now.Generation {
				was = WorkerCount{}
			}
			s := workers[now.ID]
			if s == nil {
				s = &workerSums{}
				workers[now.ID] = s
			}
			tokens := since(now.Tokens, was.Tokens)
			s.failed += since(now.Failed, was.Failed)
			s.tokens += tokens
			of(workerid.Pool(now.ID)).tokens += tokens
		}
	}
	c.keep(seenPools, seenWorkers)
	return pools, workers
}

// keep remembers what was seen. A door that is not heard of for a moment is remembered
// as it was, unless there are too many that are gone.
func (c *counter) keep(pools map[[2]string]control.PoolState, workers map[[2]string]WorkerCount) {
	c.begun = true
	for k, v := range pools {
		c.pools[k] = v
	}
	for k, v := range workers {
		c.workers[k] = v
	}
	if len(c.pools) > 4*len(pools)+64 {
		c.pools = pools
	}
	if len(c.workers) > 4*len(workers)+4096 {
		c.workers = workers
	}
}

// count adds what a door has counted of a pool since it was looked at before.
func (s *sums) count(now, was *control.PoolState) {
	failed := since(now.Failed, was.Failed)
	s.ended += since(now.OK, was.OK) + since(now.ClientError, was.ClientError) + since(now.Refused, was.Refused) + since(now.Cancelled, was.Cancelled) + failed
	s.failed += failed
	s.turned += since(now.TurnedAway, was.TurnedAway)
	s.prompt += since(now.PromptTokens, was.PromptTokens)
	for i := range min(len(now.TTFT), bounds) {
		before := int64(0)
		if i < len(was.TTFT) {
			before = was.TTFT[i]
		}
		s.ttft[i] += since(now.TTFT[i], before)
	}
}
