package sim

// ordered is one simulated worker that computes prompts as they come, as vLLM does:
// a Batch in simulated time.
type ordered struct {
	speed Speed
	batch Batch
	jobs  map[*Sequence]*Job
	under Step // that is computed
	until float64
	counts
	begun    []*Job
	finished []*Job
}

func newOrdered(s Speed) *ordered {
	o := &ordered{speed: s, batch: s.batch(), jobs: map[*Sequence]*Job{}}
	o.batch.Piece = blockTokens
	return o
}

// batch is an empty batch of an engine of that speed.
func (s *Speed) batch() Batch {
	return Batch{Blocks: max(1, s.Capacity/blockOf), Block: blockOf, Budget: s.Budget, Seats: s.seats()}
}

// took is how long a step takes, in seconds.
func (s *Speed) took(st Step) float64 {
	return s.Base + float64(st.Prefills)*s.PerPrefill + st.Pairs*s.PerPair + float64(st.Decodes)*s.PerDecode + float64(st.Context)*s.PerContext
}

func (o *ordered) add(j *Job, _ float64) {
	s := &Sequence{Prompt: j.Prompt, Pieces: j.Blocks}
	o.jobs[s] = j
	o.batch.Add(s)
}

func (o *ordered) idle() bool { return len(o.jobs) == 0 }

func (o *ordered) step(now float64) (until float64) {
	o.under = o.batch.Schedule()
	if o.under.Prefills+o.under.Decodes == 0 {
		panic("BUG: a request longer than the whole cache was sent")
	}
	for _, s := range o.batch.running {
		if j := o.jobs[s]; s.now > 0 && j.began == 0 {
			j.began = now
		}
	}
	o.preempted = o.batch.Preemptions
	o.until = now + o.speed.took(o.under)
	if o.tally != nil {
		o.tally.observe("vllm:iteration_tokens_total", float64(o.under.Prefills+o.under.Decodes))
	}
	return o.until
}

func (o *ordered) ended() (begun, finished []*Job) {
	o.batch.Commit(o.under)
	for _, s := range o.under.Say {
		j := o.jobs[s]
		j.out, j.cached = s.Out, s.Cached
		o.said++
		if o.tally != nil && j.first > 0 {
			o.tally.observe("vllm:inter_token_latency_seconds", o.until-j.token)
		}
		j.token = o.until
		if j.first == 0 {
			j.first = o.until
			o.queries, o.hits = o.queries+s.Prompt, o.hits+s.Cached
			begun = append(begun, j)
		}
		if j.out >= j.Output {
			j.end = o.until
			o.batch.Remove(s)
			delete(o.jobs, s)
			finished = append(finished, j)
		}
	}
	return begun, finished
}

func (o *ordered) live() (all []*Job) {
	for _, s := range o.batch.running {
		j := o.jobs[s]
		j.indexed = s.indexed
		all = append(all, j)
	}
	return all
}

func (o *ordered) gauge() (g Gauge) {
	g.Running, g.Waiting, g.Usage = o.batch.Counts()
	g.Queries, g.Hits = float64(o.queries), float64(o.hits)
	for _, s := range o.batch.waiting {
		g.WaitingTokens += s.Prompt
		g.PrefillTokens += s.Prompt
	}
	for _, s := range o.batch.running {
		g.PrefillTokens += max(0, s.Prompt-s.done)
	}
	return g
}

// evicted implements computer: an engine that is not ours does not tell.
func (o *ordered) evicted() []uint64 { return nil }

func (o *ordered) resident(door int) (own, others int64) { return residentOf(o.live(), door) }
