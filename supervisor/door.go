package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"roundhouse/balancer/control"
)

// errFenced is returned by Run when the doors obey a newer supervisor.
var errFenced = errors.New("another supervisor has taken over the doors; this one ends and leaves everything running")

// errTurnedAway is returned by Run when the doors go on obeying another one.
var errTurnedAway = errors.New("the doors obey another supervisor, which renews its lease; end that one first")

// How often a door is asked, and how long it may take.
const (
	doorPoll    = 200 * time.Millisecond
	doorTimeout = 5 * time.Second
	leaseRenew  = time.Second
)

// door is the supervisor's end of one private socket. The fields below the
// line belong to the loop.
type door struct {
	id     string
	socket string
	child  bool // ours to start and end
	client *http.Client
	kick   chan struct{} // a new worker set waits
	cancel context.CancelFunc

	state   *control.State // nil: never heard of
	ack     control.Ack
	lease   time.Time
	refused time.Time // since when it obeys another epoch; zero: it does not
	lastErr string
	heard   time.Time // when it last told its state
	silent  time.Time // since when every question failed; zero: the last one did not
	absent  bool      // for so long that nothing waits for it
	leaving bool      // told to drain and end
}

func newDoor(id, socket string, child bool) *door {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &door{
		id: id, socket: socket, child: child, kick: make(chan struct{}, 1),
		client: &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 4}},
	}
}

// doorUpdate is what a door's goroutine tells the loop.
type doorUpdate struct {
	door    *door
	state   *control.State
	ack     *control.Ack
	sent    time.Time      // when the acknowledged set was sent, by the steady clock
	refused *control.State // of a door that obeys another epoch
	err     error
}

// follow keeps a door up to date and reports its state until ctx ends.
func (d *door) follow(ctx context.Context, set *atomic.Pointer[control.WorkerSet], now func() time.Time, tell func(doorUpdate)) {
	defer d.client.CloseIdleConnections()
	tick := time.NewTicker(doorPoll)
	defer tick.Stop()
	var epoch, version uint64
	var put time.Time
	for {
		n := doorUpdate{door: d}
		if want := set.Load(); want != nil && (want.Epoch != epoch || want.Version != version || now().Sub(put) >= leaseRenew) {
			n.sent = now()
			n.ack, n.refused, n.err = d.put(ctx, want)
			if n.ack != nil {
				epoch, version, put = want.Epoch, want.Version, n.sent
			}
		}
		if n.err == nil {
			var st control.State
			if n.err = d.get(ctx, "/state", &st); n.err == nil {
				n.state = &st
			}
		}
		if ctx.Err() != nil {
			return
		}
		tell(n)
		select {
		case <-ctx.Done():
			return
		case <-d.kick:
		case <-tick.C:
		}
	}
}

// put sends a worker set. A door that obeys a newer supervisor answers 409.
func (d *door) put(ctx context.Context, set *control.WorkerSet) (ack *control.Ack, refused *control.State, err error) {
	body, err := json.Marshal(set)
	if err != nil {
		return nil, nil, err
	}
	status, data, err := d.ask(ctx, http.MethodPut, "/worker-set", body)
	switch {
	case err != nil:
		return nil, nil, err
	case status == http.StatusConflict:
		refused = new(control.State)
		return nil, refused, d.get(ctx, "/state", refused)
	case status >= 300:
		return nil, nil, fmt.Errorf("door %s refuses the worker set: %d %s", d.id, status, bytes.TrimSpace(data))
	}
	ack = new(control.Ack)
	return ack, nil, json.Unmarshal(data, ack)
}

func (d *door) get(ctx context.Context, path string, into any) error {
	status, data, err := d.ask(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("door %s: GET %s: %d", d.id, path, status)
	}
	return json.Unmarshal(data, into)
}

// doorAnswer bounds what is read of a door's answer.
const doorAnswer = 64 << 20

// ask sends one request over the private socket.
func (d *door) ask(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, doorTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://door"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := d.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, doorAnswer))
	return res.StatusCode, data, err
}

// wake makes the door's goroutine send the new worker set at once.
func (d *door) wake() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}
