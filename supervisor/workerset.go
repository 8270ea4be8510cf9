package supervisor

import (
	"reflect"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/configs"
	"roundhouse/configs/workerid"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/journal"
)

// publish makes the worker set of the present intent, and where it differs
// from the last one hands it to every door.
func (s *Supervisor) publish() {
	old := s.set.Load()
	if old == nil && !s.allListed() && s.clock.Now().Sub(s.began) < firstLists {
		return // a set without the workers that run would take them from the doors
	}
	set := s.workerSet()
	if old != nil {
		set.Epoch, set.Version = old.Epoch, old.Version
		if s.memory.epoch == old.Epoch && reflect.DeepEqual(*old, set) {
			return
		}
	}
	set.Epoch, set.Version = s.memory.epoch, set.Version+1
	s.set.Store(&set)
	s.gate.wake()
}

// firstLists is how long a new supervisor waits for drivers that do not answer
// before it publishes what the others run.
const firstLists = 15 * time.Second

// workerSet is what every door is to serve now.
func (s *Supervisor) workerSet() control.WorkerSet {
	cfg := s.plan.config
	set := control.WorkerSet{Schema: 1, Holder: s.memory.holder, Door: cfg.Door, Log: cfg.Log, OTLP: cfg.OTLP, Routes: cfg.Routes}
	set.Door.TLS = s.gate.tls
	if len(cfg.Door.Peers) > 0 {
		set.PeerToken = control.PeerToken(s.options.Config.Admin.Token.Reveal()) // what the API asks for
	}
	set.Keys, set.Keyed = s.keys.Keys(cfg.Door.Keys), s.keys.Asked()
	for _, p := range cfg.Plugins {
		if p.Kind == "policy" || p.Kind == "filter" {
			set.Plugins = append(set.Plugins, p)
		}
	}
	for i := range cfg.Pools {
		set.Pools = append(set.Pools, s.poolSet(&cfg.Pools[i], s.plan.pools[i]))
		set.DrainSeconds = max(set.DrainSeconds, s.plan.pools[i].Drain.Seconds())
	}
	return set
}

func (s *Supervisor) poolSet(cfg *configs.Pool, p core.Pool) control.Pool {
	out := control.Pool{
		Name: p.Name, Policy: cfg.Policy, Task: cfg.Task, Models: cfg.Engine.ServedModelName, ReasoningEnd: cfg.ReasoningEnd, Scrape: cfg.Scrape,
	}
	for _, a := range cfg.Adapters {
		out.Adapters = append(out.Adapters, a.Name)
	}
	if r := s.memory.intent.Rotations[p.Name]; r.State == core.Running && r.Canary != "" && p.Canary != nil {
		out.Canary = &control.Canary{Worker: r.Canary, Share: p.Canary.Share}
	}
	if r := s.memory.intent.Rotations[p.Name]; r.State == core.Running && r.Current != "" && p.ByGap() {
		out.PatienceSeconds = (p.Drain + p.Ready).Seconds()
	}
	for _, name := range s.workerNames(p) {
		id := workerid.Of(p.Name, name)
		url, _, alive := s.probed(id)
		w, known := s.memory.intent.Workers[id]
		if !alive || !known || url == "" { // there is nothing that a door could reach
			continue
		}
		kind := s.plan.kinds[id]
		worker := control.Worker{
			Name: name, URL: url, APIKey: kind.config.APIKey.Reveal(), Generation: w.Generation,
			Kind: s.kind(id), KVTokens: kind.config.KVTokens, Reason: w.Reason,
		}
		switch w.Phase {
		case core.Ready:
			worker.State = phase.Ready
		case core.Draining, core.Drained:
			worker.State = phase.Draining
			if !w.Deadline.IsZero() && w.Phase == core.Draining {
				shown := s.onWall(id, w.Deadline)
				worker.Deadline = &shown
			}
		case core.Starting, core.Warming:
			if !s.fleet.of(id).probe.isHealthy() {
				continue // there is nothing yet that a door could reach
			}
			worker.State = phase.Starting
		default:
			continue
		}
		out.Workers = append(out.Workers, worker)
	}
	return out
}

// workerNames are a pool's workers, with its relief while there is one.
func (s *Supervisor) workerNames(p core.Pool) []string {
	var out []string
	for _, spec := range p.Workers {
		out = append(out, spec.Name)
	}
	if _, there := s.memory.intent.Workers[workerid.Of(p.Name, core.Relief)]; there && p.Relief != nil {
		out = append(out, core.Relief)
	}
	return out
}

func (p *probe) isHealthy() bool { return p != nil && p.healthy }

// kind says what protocol a worker speaks to the door.
func (s *Supervisor) kind(id string) string {
	if p := s.fleet.of(id).probe; p != nil && p.ours != nil {
		if *p.ours {
			return "roundhouse"
		}
		return "vllm"
	}
	if s.plan.kinds[id].own {
		return "roundhouse"
	}
	return "vllm"
}

// onWall shows a deadline on the wall's clock, always the same for the same.
func (s *Supervisor) onWall(id string, deadline time.Time) time.Time {
	m := s.fleet.at(id)
	if !m.wall.steady.Equal(deadline) {
		m.wall = shownDeadline{deadline, s.clock.OnWall(deadline).Round(time.Second)}
	}
	return m.wall.shown
}

// takeDoorUpdate takes what a door's goroutine tells.
func (s *Supervisor) takeDoorUpdate(n doorUpdate) {
	d := n.door
	if s.gate.doors[d.id] != d {
		return
	}
	if n.err != nil {
		if d.lastErr == "" && d.state != nil && !s.ending { // it is ended as well
			s.log.Warn("door does not answer", "door", d.id, "error", n.err)
		}
		if d.silent.IsZero() {
			d.silent = s.clock.Now()
		}
		d.lastErr = n.err.Error()
		return
	}
	d.lastErr, d.silent = "", time.Time{}
	if n.state != nil {
		d.state, d.heard = n.state, s.clock.Now()
	}
	if n.ack != nil {
		d.ack = *n.ack
		d.lease = n.sent.Add(time.Duration(n.ack.LeaseSeconds * float64(time.Second)))
	}
	if n.refused != nil {
		s.refused(d, n.refused.Epoch)
	} else if n.ack != nil {
		d.refused = time.Time{}
	}
}

// refused takes a door's word that it obeys another epoch. One that obeyed us
// before has another supervisor now, and we end. One that never did may have
// an epoch from before our journal was lost, which we go past; or its lease is
// another supervisor's, who dies within two leases or lives.
func (s *Supervisor) refused(d *door, epoch uint64) {
	now := s.clock.Now()
	if d.ack.Epoch == s.memory.epoch {
		s.stop(errFenced)
		return
	}
	if epoch >= s.memory.epoch {
		s.memory.epoch = epoch + 1
		s.memory.write([]journal.Change{{Bucket: journal.Meta, Key: "epoch", Value: s.memory.epoch}})
	}
	if d.refused.IsZero() {
		d.refused = now
		s.events.note("", "", "door", d.id+" obeys another supervisor until its lease ends")
	}
	if now.Sub(d.refused) > s.options.LeaseWait {
		s.stop(errTurnedAway)
	}
}

// stop ends Run.
func (s *Supervisor) stop(err error) {
	select {
	case s.end <- err:
	default:
	}
}
