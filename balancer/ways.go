package balancer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// way is how one door is told. What is below the line stands under peers.mu.
type way struct {
	url    string
	peer   string // as the configuration names it; empty: its socket lies beside this door's
	client *http.Client

	busy  bool
	door  string    // its name; empty: it has not answered yet
	knows string    // the door that has been told what others used
	fleet string    // whose workers it serves, as far as it has said that
	rest  time.Time // nothing is tried until then
	since time.Time // of the first telling that failed; zero: the last one did not
	fault error     // of the last one
}

func newWay(base, socket, peer string) *way {
	t := &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: 10 * time.Second, DisableCompression: true}
	if socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	return &way{url: base, peer: peer, client: &http.Client{Transport: t, Timeout: tellWithin}}
}

// near reports whether the door serves the same workers, and is told of them. A door on
// another host may: that it does not is unknown until it has answered.
func (w *way) near(fleet string) bool {
	return (w.peer == "" || w.door != "") && sameFleet(w.fleet, fleet)
}

// ask sends one request to the other door and reads its JSON.
func (w *way) ask(ctx context.Context, method, path, token string, body, into any) error {
	var send io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		send = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, send)
	if err != nil {
		return err
	}
	if token != "" && w.peer != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s answered %s", w.url, path, resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, 256<<20)).Decode(into)
}

// took notes how a telling has ended.
func (w *way) took(own string, ack, fleet string, err error) {
	w.busy = false
	now := time.Now()
	switch {
	case err != nil:
		w.rest, w.fault = now.Add(lookEvery), err
		if w.since.IsZero() {
			w.since = now
		}
		return
	case ack == own:
		w.rest = now.Add(selfEvery) // a name that stands for this door as well
	}
	w.door, w.fleet, w.fault, w.since = ack, fleet, nil, time.Time{}
}

// find looks where other doors may be, once in a while.
func (p *peers) find(now time.Time) {
	p.mu.Lock()
	due := now.Sub(p.looked) > lookEvery-tellEvery/2
	if due {
		p.looked = now
	}
	seek := due && !p.seeking
	p.seeking = p.seeking || due
	p.mu.Unlock()
	if due {
		p.findBeside()
	}
	if seek {
		p.wg.Go(p.findNamed)
	}
}

// findBeside looks for doors whose sockets lie beside this one's.
func (p *peers) findBeside() {
	if p.socket == "" {
		return
	}
	all, err := filepath.Glob(filepath.Join(filepath.Dir(p.socket), "*.sock"))
	if err != nil {
		p.d.log.Debug("cannot look for other doors", "error", err.Error())
	}
	found := map[string]func() *way{}
	for _, socket := range all {
		if socket != p.socket {
			found["unix:"+socket] = func() *way { return newWay("http://door", socket, "") }
		}
	}
	p.found(found, func(w *way) bool { return w.peer == "" })
}

// findNamed looks for the doors that the configuration names. A name that cannot be
// resolved now stands for those that it stood for before.
func (p *peers) findNamed() {
	found, unknown := map[string]func() *way{}, map[string]bool{}
	for _, peer := range p.d.current().set.Door.Peers {
		hosts, err := p.hostsOf(peer)
		if err != nil {
			p.d.log.Debug("another door's name cannot be resolved", "peer", peer, "error", err.Error())
			unknown[peer] = true
		}
		for _, base := range hosts {
			found[base] = func() *way { return newWay(base+"/api", "", peer) }
		}
	}
	p.found(found, func(w *way) bool { return w.peer != "" && !unknown[w.peer] })
	p.mu.Lock()
	p.seeking = false
	p.mu.Unlock()
}

// found has ways to the doors that were found, and lets go of those of the same kind
// that were not.
func (p *peers) found(found map[string]func() *way, kind func(*way) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, w := range p.ways {
		if found[key] == nil && kind(w) {
			w.client.CloseIdleConnections()
			delete(p.ways, key)
		}
	}
	for key, make := range found {
		if p.ways[key] == nil {
			p.ways[key] = make()
		}
	}
	p.noteNear()
}

// noteNear notes whether any door is to be told of choices. p.mu is held.
func (p *peers) noteNear() {
	fleet, near := p.d.current().fleet(), false
	for _, w := range p.ways {
		near = near || w.near(fleet) && w.door != p.d.id
	}
	p.listened.Store(near)
}

// hostsOf resolves a peer's address: a name may stand for many doors.
func (p *peers) hostsOf(address string) ([]string, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(p.ctx, tellWithin)
	defer cancel()
	ips, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil {
		return nil, err
	}
	var out []string
	for _, ip := range ips {
		host := ip
		if port := u.Port(); port != "" {
			host = net.JoinHostPort(ip, port)
		} else if strings.Contains(ip, ":") {
			host = "[" + ip + "]"
		}
		out = append(out, u.Scheme+"://"+host)
	}
	return out, nil
}

// fault is why doors that the configuration names have not taken what they were told for
// a while; nil: they have.
func (p *peers) fault(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first *way
	for _, w := range p.ways {
		if w.peer == "" || w.since.IsZero() || now.Sub(w.since) < silentFor {
			continue
		}
		if first == nil || cmp.Less(w.url, first.url) {
			first = w
		}
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("door.peers: %s does not take this door's totals, so budgets and limits are held here and there apart: %w", first.peer, first.fault)
}

// closeWays ends the connections to the other doors.
func (p *peers) closeWays() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.ways {
		w.client.CloseIdleConnections()
	}
}
