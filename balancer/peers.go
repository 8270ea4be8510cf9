package balancer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/worker/api"
)

// How doors exchange their totals.
const (
	tellEvery  = 100 * time.Millisecond
	tellSoon   = 5 * time.Millisecond   // after a choice, at the earliest
	tellEach   = 100 * time.Microsecond // and this for each worker and each door to be told: a twentieth of a core
	lookEvery  = time.Second            // for doors that have come or gone
	tellWithin = time.Second            // one door may take so long to listen
	silentFor  = 2 * time.Second        // a door that says nothing for so long is not counted any more
	lingerFor  = 15 * time.Second       // idle clients have so long to come to the next door by themselves
)

// peers is the other doors: what they say, and the ways to them. Doors of one
// supervisor find each other by their private sockets, which lie in one folder;
// doors on other hosts by the configuration's list of admin APIs.
type peers struct {
	d      *common
	ctx    context.Context // the door's
	wg     *sync.WaitGroup // of its goroutines
	socket string          // its own; empty: it has none
	token  string          // shown to the doors that the configuration names

	mu     sync.Mutex
	heard  map[string]*heard // by door
	ways   map[string]*way   // by address
	serial uint64
	looked time.Time
	budget time.Time // when what budgets have used was last told

	sharing  sync.Mutex    // held while workers are shared out
	listened atomic.Bool   // some door is to be told
	changed  chan struct{} // holds one: a choice was made since the last tell
}

// change says that a choice was made, which other doors want to know of soon.
func (p *peers) change() {
	if !p.listened.Load() {
		return
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// heard is what one door has said last.
type heard struct {
	totals control.Totals
	at     time.Time
}

// way is how one door is told.
type way struct {
	url    string
	token  string
	client *http.Client
	busy   bool
	self   bool      // it is this door, under another name
	rest   time.Time // it did not take what it was told; nothing is tried until then
}

func newWay(base, socket, token string) *way {
	t := &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: 10 * time.Second, DisableCompression: true}
	if socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	return &way{url: base, token: token, client: &http.Client{Transport: t, Timeout: tellWithin}}
}

// ask sends one request to the other door and reads its JSON.
func (w *way) ask(ctx context.Context, method, path string, body, into any) error {
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
	if w.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token)
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

// find looks where other doors may be, once in a while.
func (p *peers) find(now time.Time, atOnce bool) {
	p.mu.Lock()
	due := atOnce || now.Sub(p.looked) >= lookEvery
	if due {
		p.looked = now
	}
	p.mu.Unlock()
	if !due {
		return
	}
	found := map[string]func() *way{}
	if p.socket != "" {
		all, err := filepath.Glob(filepath.Join(filepath.Dir(p.socket), "*.sock"))
		if err != nil {
			p.d.log.Debug("cannot look for other doors", "error", err.Error())
		}
		for _, socket := range all {
			if socket != p.socket {
				found["unix:"+socket] = func() *way { return newWay("http://door", socket, "") }
			}
		}
	}
	for _, address := range p.d.current().set.Door.Peers {
		for _, base := range p.hostsOf(address) {
			found[base] = func() *way { return newWay(base+"/api", "", p.token) }
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, w := range p.ways {
		if found[key] == nil {
			w.client.CloseIdleConnections()
			delete(p.ways, key)
		}
	}
	for key, make := range found {
		if p.ways[key] == nil {
			p.ways[key] = make()
		}
	}
	p.listened.Store(len(p.ways) > 0)
}

// hostsOf resolves a peer's address: a name may stand for many doors.
func (p *peers) hostsOf(address string) []string {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, tellWithin)
	defer cancel()
	ips, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil {
		p.d.log.Debug("another door's name cannot be resolved", "peer", address, "error", err.Error())
		return nil
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
	return out
}

// liveOf counts a key's requests at all other doors.
func (p *peers) liveOf(key string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.heard {
		if h.totals.Gone {
			continue
		}
		for _, u := range h.totals.Keys {
			if u.Name == key {
				n += max(u.Live, 0)
			}
		}
	}
	return n
}

// resident is what a worker holds of the other doors that this one hears of.
func (p *peers) resident(doors map[string]api.DoorStatus) (tokens int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range doors {
		if h := p.heard[id]; h != nil && !h.totals.Gone {
			tokens += max(s.ResidentTokens, 0)
		}
	}
	return tokens
}

// successor reports whether another door takes the connections from now on.
func (p *peers) successor() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.heard {
		if !h.totals.Leaving && !h.totals.Gone && time.Since(h.at) < silentFor {
			return true
		}
	}
	return false
}

// count is how many other doors there are.
func (p *peers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.heard)
}

// closeWays ends the connections to the other doors.
func (p *peers) closeWays() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.ways {
		w.client.CloseIdleConnections()
	}
}
