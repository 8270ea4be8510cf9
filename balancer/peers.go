package balancer

import (
	"bytes"
	"context"
	"encoding/binary"
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
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/surface"
	"roundhouse/configs"
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

// gap is how long after one tell the next may come.
func (p *peers) gap(workers int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(max(tellSoon, time.Duration(workers*len(p.ways))*tellEach), tellEvery)
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

// tellPeers tells the other doors until the door ends: at a steady pace, and
// soon after a choice.
func (d *Door) tellPeers() {
	defer d.wg.Done()
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	soon := time.NewTimer(time.Hour)
	defer soon.Stop()
	var told time.Time
	changed := d.peers.changed // nil while soon is set
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-changed:
			soon.Reset(time.Until(told.Add(d.peers.gap(len(d.current().workers)))))
			changed = nil
			continue
		case <-soon.C:
		case <-tick.C:
			d.findPeers(time.Now(), false)
			d.countElsewhere(time.Now())
		}
		changed, told = d.peers.changed, time.Now()
		d.tellAll(false)
	}
}

// findPeers looks where other doors may be, once in a while.
func (d *Door) findPeers(now time.Time, atOnce bool) {
	p := &d.peers
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
	if d.opts.Socket != "" {
		all, err := filepath.Glob(filepath.Join(filepath.Dir(d.opts.Socket), "*.sock"))
		if err != nil {
			d.log.Debug("cannot look for other doors", "error", err.Error())
		}
		for _, socket := range all {
			if socket != d.opts.Socket {
				found["unix:"+socket] = func() *way { return newWay("http://door", socket, "") }
			}
		}
	}
	for _, address := range d.current().set.Door.Peers {
		for _, base := range d.hostsOf(address) {
			found[base] = func() *way { return newWay(base+"/api", "", d.opts.PeerToken) }
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
func (d *Door) hostsOf(address string) []string {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(d.ctx, tellWithin)
	defer cancel()
	ips, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil {
		d.log.Debug("another door's name cannot be resolved", "peer", address, "error", err.Error())
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

// tellAll sends this door's totals to every other. It does not wait for any of
// them, unless these are the last.
func (d *Door) tellAll(last bool) {
	p := &d.peers
	p.mu.Lock()
	var idle []*way
	for _, w := range p.ways {
		if (!w.busy || last) && !w.self && time.Now().After(w.rest) {
			w.busy = true
			idle = append(idle, w)
		}
	}
	listeners := len(p.heard) > 0
	p.mu.Unlock()
	if len(idle) == 0 {
		return
	}
	t := d.totals()
	t.Gone = last
	t.Usage = d.budgets(last)
	for _, pool := range d.current().pools {
		t.Cached = append(t.Cached, pool.TakeUntold(listeners)...)
	}
	var told sync.WaitGroup
	for _, w := range idle {
		told.Go(func() {
			var ack control.TotalsAck
			err := w.ask(context.Background(), http.MethodPut, "/totals", &t, &ack)
			p.mu.Lock()
			defer p.mu.Unlock()
			w.busy = false
			if w.self = err == nil && ack.Door == d.id; err != nil {
				w.rest = time.Now().Add(lookEvery)
			}
		})
	}
	if last {
		told.Wait()
	}
	d.wg.Go(told.Wait)
}

// totals is what this door tells the others.
func (d *Door) totals() control.Totals {
	v := d.current()
	d.peers.mu.Lock()
	d.peers.serial++
	t := control.Totals{Door: d.id, Serial: d.peers.serial, Leaving: d.draining.Load()}
	d.peers.mu.Unlock()
	now := d.now()
	for _, w := range v.workers {
		at := w.Instance()
		booked, e := d.ledger.Totals(w.Acct, now)
		if booked != at.Known {
			continue // it has just turned; the next totals have it
		}
		t.Workers = append(t.Workers, control.WorkerTotal{
			ID: w.ID, Generation: at.Generation, Identity: at.Identity,
			ChargedTokens: e.KV, PrefillTokens: e.Prefill, ResidentTokens: e.Resident, InFlight: e.InFlight,
		})
	}
	for _, k := range v.keys.Keys {
		u := control.KeyUse{Name: k.Name}
		u.Requests, u.Tokens, u.Live = k.Total()
		t.Keys = append(t.Keys, u)
	}
	return t
}

// budgets is what this door's folder knows of keys with a budget, once a second.
func (d *Door) budgets(last bool) *control.FolderUse {
	now := time.Now()
	d.peers.mu.Lock()
	due := last || now.Sub(d.peers.budget) >= time.Second
	if due {
		d.peers.budget = now
	}
	d.peers.mu.Unlock()
	var names []string
	for _, k := range d.current().keys.Keys {
		if due && (k.Cfg.Day != configs.Budget{} || k.Cfg.Month != configs.Budget{}) {
			names = append(names, k.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return d.usage.Told(names, now)
}

// hear takes another door's totals.
func (d *Door) hear(t control.Totals) {
	if t.Door == d.id || !surface.ValidID(t.Door) {
		return
	}
	now := time.Now()
	p := &d.peers
	p.mu.Lock()
	old := p.heard[t.Door]
	if old != nil && t.Serial <= old.totals.Serial && t.Serial > 1 {
		p.mu.Unlock()
		return
	}
	kept := t
	kept.Cached = nil
	p.heard[t.Door] = &heard{kept, now}
	p.mu.Unlock()
	if old == nil || old.totals.Leaving != t.Leaving || old.totals.Gone != t.Gone {
		d.shareOut(d.current())
	}
	d.countKeys(old, &t, now)
	d.usage.Hear(t.Usage)
	d.hearCached(t.Cached)
	d.countElsewhere(now)
}

// countKeys takes what another door's clients have used since it last said out
// of the same keys' buckets here. Of a door that is new nothing is known to
// have been used since.
func (d *Door) countKeys(old *heard, t *control.Totals, now time.Time) {
	before := map[string]control.KeyUse{}
	if old != nil {
		for _, u := range old.totals.Keys {
			before[u.Name] = u
		}
	}
	keys := d.current().keys
	for _, u := range t.Keys {
		k := keys.Configured(u.Name)
		if k == nil {
			continue
		}
		was, known := before[u.Name]
		if !known || was.Requests > u.Requests {
			was = u
		}
		k.UsedElsewhere(u.Requests-was.Requests, u.Tokens-was.Tokens, d.peers.liveOf(u.Name), now)
	}
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

// countElsewhere enters into the ledger what the other doors have at each
// worker. A door that is gone, or silent for long, has nothing there.
func (d *Door) countElsewhere(now time.Time) {
	p := &d.peers
	p.mu.Lock()
	silent := false
	sums := map[string][]control.WorkerTotal{}
	for id, h := range p.heard {
		if h.totals.Gone || now.Sub(h.at) > silentFor {
			delete(p.heard, id)
			silent = true
			continue
		}
		for _, t := range h.totals.Workers {
			sums[t.ID] = append(sums[t.ID], t)
		}
	}
	none := len(p.heard) == 0 && !silent
	p.mu.Unlock()
	if none {
		return
	}
	v := d.current()
	for _, w := range v.workers {
		at := w.Instance()
		var e ledger.Elsewhere
		for _, t := range sums[w.ID] {
			if t.Generation == at.Generation && (t.Identity == at.Identity || t.Identity == "" || at.Identity == "") {
				e.Add(ledger.Elsewhere{KV: t.ChargedTokens, Prefill: t.PrefillTokens, Resident: t.ResidentTokens, InFlight: t.InFlight})
			}
		}
		d.ledger.SetElsewhere(w.Acct, at.Known, e)
	}
	if silent {
		d.shareOut(v)
		for _, k := range v.keys.Keys {
			k.UsedElsewhere(0, 0, p.liveOf(k.Name), now)
		}
	}
	for _, pool := range v.pools {
		pool.Pump(&d.fleet) // what another door has released may be room here
	}
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

// hearCached enters what other doors' requests have brought into the workers'
// caches.
func (d *Door) hearCached(all []control.Cached) {
	if len(all) == 0 {
		return
	}
	by := map[string]control.Cached{}
	for _, c := range all {
		by[c.Worker] = c
	}
	for _, w := range d.current().workers {
		c, ok := by[w.ID]
		t := w.Pool.Prefix.Load()
		if !ok || t == nil {
			continue
		}
		chunks := make([]uint64, 0, len(c.Chunks)/8)
		for b := c.Chunks; len(b) >= 8; b = b[8:] {
			chunks = append(chunks, binary.LittleEndian.Uint64(b))
		}
		t.Add(w.Slot, chunks)
	}
}
