package pods

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"regexp"
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
	Of        string // the pods: their selector, or their InferencePool
	Holder    string // this door, unlike any other
	// Known is what the door knows of the pool's pods, by their names.
	Known func() map[string]Known
	// Fault is told why the pool cannot be rotated, and nil whenever it can.
	Fault func(error)
	Log   *slog.Logger
}

// Known is what a door knows of a pod.
type Known struct {
	Idle    bool   // no request runs there
	Failing string // why it gets none though it is ready; empty: it does
}

// unknown is a pod that the door has not taken up yet.
var unknown = Known{Failing: "the door does not know it yet"}

// Rotator rotates one pool's pods while this door holds the pool's Lease.
type Rotator struct {
	o     Options
	lease kube.Lease

	// acting is held by whoever reads and writes the Lease, for as long as the API server
	// takes.
	acting  sync.Mutex
	lead    lead
	answers map[Key]Answer

	// mu is held by nobody who waits: those who show the rotation and those who see pods
	// take it.
	mu    sync.Mutex
	pods  map[string]kube.Pod // nil: not seen yet
	state State
}

// New makes a Rotator. It does nothing before Run.
func New(o Options) *Rotator {
	o.Pool.Times = o.Pool.Times.filled()
	return &Rotator{o: o, lead: lead{holder: o.Holder}, answers: map[Key]Answer{},
		lease: kube.Lease{Client: o.Client, Namespace: o.Namespace, Name: LeaseName(o.Pool.Name, o.Of)}}
}

// notOfNames is what of a pool's name no object's name may have.
var notOfNames = regexp.MustCompile(`[^a-z0-9]+`)

// LeaseName is the name of the Lease of a pool and of the pods that it is made of. The
// digest keeps apart what an object's name cannot: Chat_1 from chat-1, and the pools of
// several installations that are called alike.
func LeaseName(pool, of string) string {
	sum := sha256.Sum256([]byte(pool + "\x00" + of))
	return "roundhouse-" + strings.Trim(notOfNames.ReplaceAllString(strings.ToLower(pool), "-"), "-") + "-" + hex.EncodeToString(sum[:5])
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
	r.acting.Lock()
	defer r.acting.Unlock()
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
	r.acting.Lock()
	defer r.acting.Unlock()
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

// keep reads the Lease, takes it if it is free, and renews it in time. r.acting is held.
func (r *Rotator) keep(ctx context.Context) error {
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

// note takes in what the Lease says. r.acting is held.
func (r *Rotator) note(record kube.Record, now time.Time) error {
	var state State
	if record.Note != "" {
		if err := json.Unmarshal([]byte(record.Note), &state); err != nil {
			return fmt.Errorf("the annotation of the Lease %s/%s: %w; delete the Lease", r.o.Namespace, r.lease.Name, err)
		}
	}
	r.lead.note(record, now)
	r.lead.read = now
	r.mu.Lock()
	r.state = state
	r.mu.Unlock()
	return nil
}

// write writes a Record as this door's own word. r.acting is held.
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
// could not be written is not done. r.acting is held.
func (r *Rotator) decide(ctx context.Context) ([]Act, error) {
	now := time.Now()
	pods, state := r.seen()
	if pods == nil || !r.lead.holds(now) {
		return nil, nil
	}
	r.forget(pods, state.Rotation)
	next, acts, events := Next(&r.o.Pool, state, Seen{Pods: pods, Answers: r.answers}, now)
	if !reflect.DeepEqual(next, state) {
		record, err := noted(r.lead.record, next)
		if err != nil {
			return nil, err
		}
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

// noted is a Record with a State.
func noted(record kube.Record, state State) (kube.Record, error) {
	note, err := json.Marshal(state)
	record.Note = string(note)
	return record, err
}

// seen are the pods as Next takes them, in the order of their names, and the State; nil:
// they are not in view yet.
func (r *Rotator) seen() ([]Pod, State) {
	r.mu.Lock()
	pods, state := r.pods, r.state
	r.mu.Unlock()
	if pods == nil {
		return nil, state
	}
	known := r.o.Known()
	all := make([]Pod, 0, len(pods))
	for uid, p := range pods {
		one := Pod{
			Name: p.Metadata.Name, UID: uid, Ready: p.Ready(), Leaving: p.Metadata.DeletionTimestamp != nil || p.Ended(),
			Marked: p.Mark(), Grace: time.Duration(p.Spec.GraceSeconds) * time.Second, Restarts: p.Restarts(),
		}
		if one.Ready && !one.Leaving {
			k, ok := known[one.Name]
			if !ok {
				k = unknown
			}
			one.Idle, one.Failing = k.Idle, k.Failing
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Pod) int { return strings.Compare(a.Name+" "+a.UID, b.Name+" "+b.UID) })
	return all, state
}

// forget drops the answers about pods that are gone, but for the pod whose turn it is.
// r.acting is held.
func (r *Rotator) forget(pods []Pod, now *Rotation) {
	for key := range r.answers {
		turning := now != nil && now.Turn != nil && now.Turn.UID == key.UID
		if !turning && !slices.ContainsFunc(pods, func(p Pod) bool { return p.UID == key.UID }) {
			delete(r.answers, key)
		}
	}
}

// do acts, and keeps the answer for the next look. r.acting is held.
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
	r.answers[Key{a.Kind, a.Pod.UID}] = answer
}
