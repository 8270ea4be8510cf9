package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"roundhouse/kube"
)

// Options is what a Rotator works with.
type Options struct {
	Pool      Pool
	Client    *kube.Client
	Namespace string // of the pods, and of the Lease
	Holder    string // this door, unlike any other
	// Worker says of a pod what the door knows of it: whether no request runs there, and
	// why it gets none.
	Worker func(pod string) (idle bool, failing string)
	// Fault is told why the pool cannot be rotated, and nil whenever it can.
	Fault func(error)
	Log   *slog.Logger
}

// Rotator rotates one pool's pods while this door holds the pool's Lease.
type Rotator struct {
	o     Options
	lease kube.Lease

	mu      sync.Mutex
	pods    map[string]kube.Pod // nil: not seen yet
	lead    lead
	state   State
	answers map[Key]Answer
}

// New makes a Rotator. It does nothing before Run.
func New(o Options) *Rotator {
	o.Pool.Times = o.Pool.Times.filled()
	return &Rotator{o: o, lead: lead{holder: o.Holder}, answers: map[Key]Answer{},
		lease: kube.Lease{Client: o.Client, Namespace: o.Namespace, Name: LeaseName(o.Pool.Name)}}
}

// LeaseName is the name of a pool's Lease: names of objects have no underscores.
func LeaseName(pool string) string {
	return "roundhouse-" + strings.ToLower(strings.ReplaceAll(pool, "_", "-"))
}

// See takes the pool's pods.
func (r *Rotator) See(all map[string]kube.Pod) {
	all = maps.Clone(all)
	r.mu.Lock()
	r.pods = all
	r.mu.Unlock()
}

// Run looks, and acts where this door may, until ctx ends. Then it gives the Lease away.
func (r *Rotator) Run(ctx context.Context) {
	t := time.NewTicker(r.o.Pool.Times.Look)
	defer t.Stop()
	for {
		err := r.look(ctx)
		if ctx.Err() != nil {
			r.release(context.WithoutCancel(ctx))
			return
		}
		r.o.Fault(err)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

// answersWithin is how long the API server may take with a request of a Rotator's.
const answersWithin = 5 * time.Second

// release lets another door go on at once.
func (r *Rotator) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.lead.holds(time.Now()) {
		return
	}
	free := r.lead.record
	free.Holder = ""
	if _, err := r.lease.Write(ctx, free, lasts); err != nil && !errors.Is(err, kube.ErrWritten) {
		r.o.Log.Warn("the Lease is not given away", "pool", r.o.Pool.Name, "error", err.Error())
	}
}

// look takes the rotation a step further.
func (r *Rotator) look(ctx context.Context) error {
	if err := r.keep(ctx); err != nil {
		return fmt.Errorf("rotation of pool %q: %w", r.o.Pool.Name, err)
	}
	acts, err := r.decide(ctx)
	if err != nil {
		return fmt.Errorf("rotation of pool %q: %w", r.o.Pool.Name, err)
	}
	for _, a := range acts {
		r.do(ctx, a)
	}
	return nil
}

// keep reads the Lease, takes it if it is free, and renews it in time.
func (r *Rotator) keep(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.lead.known && now.Sub(r.lead.read) < r.o.Pool.Times.Renews {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	record, err := r.lease.Read(ctx)
	if err != nil {
		return err
	}
	if err := r.note(record, now); err != nil {
		return err
	}
	if record.Holder != r.o.Holder && !r.lead.free(now) {
		return nil
	}
	return r.write(ctx, record)
}

// note takes in what the Lease says. r.mu is held.
func (r *Rotator) note(record kube.Record, now time.Time) error {
	var state State
	if record.Note != "" {
		if err := json.Unmarshal([]byte(record.Note), &state); err != nil {
			return fmt.Errorf("the annotation of the Lease %s/%s: %w; delete the Lease", r.o.Namespace, r.lease.Name, err)
		}
	}
	r.lead.note(record, now)
	r.lead.read, r.state = now, state
	return nil
}

// write writes a Record as this door's own word. r.mu is held.
func (r *Rotator) write(ctx context.Context, record kube.Record) error {
	began := time.Now()
	took := record.Holder != r.o.Holder
	record.Holder, record.Renewed = r.o.Holder, ""
	written, err := r.lease.Write(ctx, record, lasts)
	if errors.Is(err, kube.ErrWritten) {
		r.lead.known = false // it is read again
		return nil
	}
	if err != nil {
		return err
	}
	if took {
		r.o.Log.Info("rotates the pool's pods from now on", "pool", r.o.Pool.Name)
	}
	r.lead.wrote = began
	return r.note(written, began)
}

// decide finds what is to be done, and writes down what is to be remembered first. What
// could not be written is not done.
func (r *Rotator) decide(ctx context.Context) ([]Act, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.pods == nil || !r.lead.holds(now) {
		return nil, nil
	}
	pods := r.seen()
	r.forget(pods)
	next, acts, events := Next(&r.o.Pool, r.state, Seen{Pods: pods, Answers: r.answers}, now)
	if !reflect.DeepEqual(next, r.state) {
		note, err := json.Marshal(next)
		if err != nil {
			return nil, err
		}
		record := r.lead.record
		record.Note = string(note)
		ctx, cancel := context.WithTimeout(ctx, answersWithin)
		defer cancel()
		if err := r.write(ctx, record); err != nil || !r.lead.known {
			return nil, err
		}
	}
	for _, e := range events {
		r.o.Log.Info(e.Kind, "pool", r.o.Pool.Name, "pod", e.Pod, "why", e.Text)
	}
	return acts, nil
}

// seen are the pods as Next takes them, in the order of their names. r.mu is held.
func (r *Rotator) seen() []Pod {
	all := make([]Pod, 0, len(r.pods))
	for uid, p := range r.pods {
		one := Pod{
			Name: p.Metadata.Name, UID: uid, Ready: p.Ready(), Leaving: p.Metadata.DeletionTimestamp != nil || p.Ended(),
			Marked: p.Mark(), Grace: time.Duration(p.Spec.GraceSeconds) * time.Second, Restarts: p.Restarts(),
		}
		if one.Ready && !one.Leaving {
			one.Idle, one.Failing = r.o.Worker(one.Name)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Pod) int { return strings.Compare(a.Name+" "+a.UID, b.Name+" "+b.UID) })
	return all
}

// forget drops the answers about pods that are gone, but for the pod whose turn it is.
// r.mu is held.
func (r *Rotator) forget(pods []Pod) {
	for key := range r.answers {
		turning := r.state.Rotation != nil && r.state.Rotation.Turn != nil && r.state.Rotation.Turn.UID == key.UID
		if !turning && !slices.ContainsFunc(pods, func(p Pod) bool { return p.UID == key.UID }) {
			delete(r.answers, key)
		}
	}
}

// do acts, and keeps the answer for the next look.
func (r *Rotator) do(ctx context.Context, a Act) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	var err error
	switch a.Kind {
	case Ask, Evict:
		err = r.o.Client.Evict(ctx, r.o.Namespace, a.Pod.Name, a.Pod.UID, a.Kind == Ask)
	case Mark, Unmark:
		err = r.o.Client.Mark(ctx, r.o.Namespace, a.Pod.Name, a.Pod.UID, a.Until)
	}
	answer := Answer{At: time.Now(), Status: 201}
	if refused := (*kube.Refused)(nil); errors.As(err, &refused) {
		answer.Status, answer.Message = refused.Status, refused.Message
	} else if err != nil {
		answer.Status, answer.Message = 0, err.Error()
	}
	r.mu.Lock()
	r.answers[Key{a.Kind, a.Pod.UID}] = answer
	r.mu.Unlock()
}
