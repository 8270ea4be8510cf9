package keyring

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"roundhouse/balancer/surface"
	"roundhouse/configs"
)

// Ring holds the keys that clients may show.
type Ring struct {
	Keys  []*Key
	Asked bool // clients need a key
	names map[string]*Key
	sums  map[uint64][]opener
}

// opener is a hash that opens a key. They are found by their first bytes, which tells
// whoever takes the time nothing of the rest, nor of a key that has such a hash.
type opener struct {
	sum [sha256.Size]byte
	key *Key
}

// Key is one client's key, as configured, with what it has used.
type Key struct {
	Name    string
	Cfg     configs.Key
	expires time.Time // zero: never
	*use
}

// use is what a key has used. It outlives a reload.
type use struct {
	mu        sync.Mutex
	requests  bucket
	tokens    bucket
	live      int
	elsewhere int    // live at other doors
	entered   uint64 // requests that this door has counted
	spent     int64  // tokens that this door has counted
}

// bucket fills by the minute's limit over a minute, and holds as much at most.
type bucket struct {
	remaining float64
	at        time.Time
}

// fill brings the bucket up to now.
func (b *bucket) fill(limit float64, now time.Time) {
	if b.at.IsZero() {
		b.remaining = limit
	} else {
		b.remaining = math.Min(limit, b.remaining+limit*now.Sub(b.at).Minutes())
	}
	b.at = now
}

// wait is how long until more than zero remains, in whole seconds, at most a
// day.
func (b *bucket) wait(limit float64) int {
	return max(1, int(math.Ceil(math.Min(86400, (1-b.remaining)/limit*60))))
}

// New makes a ring of keys; one that was there before keeps what it has used. Of two of
// one name the first holds. Without a key none is asked for, unless asked says so.
func New(cfgs []configs.Key, asked bool, old *Ring) (*Ring, error) {
	r := &Ring{Asked: asked || len(cfgs) > 0, names: map[string]*Key{}, sums: map[uint64][]opener{}}
	for _, c := range cfgs {
		if r.names[c.Name] != nil {
			continue
		}
		k := &Key{Name: c.Name, Cfg: c, use: &use{}}
		var err error
		if k.expires, err = c.Expiry(); err != nil {
			return nil, fmt.Errorf("key %q: %w", c.Name, err)
		}
		for _, h := range c.SHA256 {
			raw, err := hex.DecodeString(h)
			if err != nil || len(raw) != sha256.Size {
				return nil, fmt.Errorf("key %q: sha256 must be 64 hexadecimal digits", c.Name)
			}
			at := binary.NativeEndian.Uint64(raw)
			r.sums[at] = append(r.sums[at], opener{[sha256.Size]byte(raw), k})
		}
		if o := old.Configured(c.Name); o != nil {
			k.use = o.use
		}
		r.names[c.Name] = k
		r.Keys = append(r.Keys, k)
	}
	return r, nil
}

// Configured is the key of that name, nil if there is none.
func (r *Ring) Configured(name string) *Key {
	if r == nil {
		return nil
	}
	return r.names[name]
}

// Find returns the key that a client shows. The hashes are compared in constant time, so
// that the time tells nothing.
func (r *Ring) Find(authorization, xAPIKey string) *Key {
	shown := xAPIKey
	if rest, ok := CutBearer(authorization); ok {
		shown = rest
	}
	if shown == "" || len(shown) > 4096 {
		return nil
	}
	sum := sha256.Sum256([]byte(shown))
	for _, o := range r.sums[binary.NativeEndian.Uint64(sum[:])] {
		if subtle.ConstantTimeCompare(sum[:], o.sum[:]) == 1 {
			return o.key
		}
	}
	return nil
}

// CutBearer returns the token of an Authorization field.
func CutBearer(s string) (string, bool) {
	if len(s) > 7 && strings.EqualFold(s[:7], "bearer ") {
		return strings.TrimSpace(s[7:]), true
	}
	return "", false
}

// Allows reports whether the key may use a model.
func (k *Key) Allows(model string) bool {
	return len(k.Cfg.Models) == 0 || slices.Contains(k.Cfg.Models, "*") || slices.Contains(k.Cfg.Models, model)
}

// AllowsPool reports whether the key may use a pool.
func (k *Key) AllowsPool(pool string) bool {
	return k == nil || len(k.Cfg.Pools) == 0 || slices.Contains(k.Cfg.Pools, pool)
}

// Expired reports whether the key's time is over.
func (k *Key) Expired(now time.Time) bool { return !k.expires.IsZero() && !now.Before(k.expires) }

// Live is the requests of the key that run, at all doors.
func (k *Key) Live() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.live + k.elsewhere
}

// Enter counts a request against the key's limits, or says which is used up.
func (k *Key) Enter(now time.Time) *surface.Failure {
	k.mu.Lock()
	defer k.mu.Unlock()
	over := func(what string, limit, after int) *surface.Failure {
		return &surface.Failure{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Reason: "key_limit", RetryAfter: after,
			Message: fmt.Sprintf("key %q has used up its %s (%d)", k.Name, what, limit)}
	}
	if limit := k.Cfg.MaxConcurrent; limit > 0 && k.live+k.elsewhere >= limit {
		return over("concurrent requests", limit, 1)
	}
	if limit := k.Cfg.TokensPerMinute; limit > 0 {
		if k.tokens.fill(float64(limit), now); k.tokens.remaining < 1 {
			return over("tokens a minute", limit, k.tokens.wait(float64(limit)))
		}
	}
	if limit := k.Cfg.RequestsPerMinute; limit > 0 {
		if k.requests.fill(float64(limit), now); k.requests.remaining < 1 {
			return over("requests a minute", limit, k.requests.wait(float64(limit)))
		}
		k.requests.remaining--
	}
	k.live++
	k.entered++
	return nil
}

// Charge takes tokens from the key, or gives them back where tokens is below
// zero. What remains may sink far below zero; it saturates long before it could
// wrap.
func (k *Key) Charge(tokens int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spent += tokens
	k.take(tokens)
}

// take takes tokens out of the bucket. k.mu is held.
func (k *Key) take(tokens int64) {
	if limit := float64(k.Cfg.TokensPerMinute); limit > 0 {
		k.tokens.remaining = math.Max(-1e15, math.Min(limit, k.tokens.remaining-float64(tokens)))
	}
}

// UsedElsewhere counts what other doors have let through since they last said,
// and how many of the key's requests run there.
func (k *Key) UsedElsewhere(requests uint64, tokens int64, live int, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if limit := float64(k.Cfg.RequestsPerMinute); limit > 0 {
		k.requests.fill(limit, now)
		k.requests.remaining = math.Max(-limit, k.requests.remaining-float64(requests))
	}
	if limit := float64(k.Cfg.TokensPerMinute); limit > 0 {
		k.tokens.fill(limit, now)
		k.take(tokens)
	}
	k.elsewhere = live
}

// Total is what the key has used at this door so far, and how many of its
// requests run here.
func (k *Key) Total() (requests uint64, tokens int64, live int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.entered, k.spent, k.live
}

// Remaining is what is left in the buckets; nil for one that was never used.
func (k *Key) Remaining(now time.Time) (requests, tokens *float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	level := func(b *bucket, limit int) *float64 {
		if limit == 0 || b.at.IsZero() {
			return nil
		}
		b.fill(float64(limit), now)
		v := b.remaining
		return &v
	}
	return level(&k.requests, k.Cfg.RequestsPerMinute), level(&k.tokens, k.Cfg.TokensPerMinute)
}

// TakeRemaining takes over what another door has left in the buckets.
func (k *Key) TakeRemaining(requests, tokens *float64, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if requests != nil {
		k.requests = bucket{remaining: *requests, at: now}
	}
	if tokens != nil {
		k.tokens = bucket{remaining: *tokens, at: now}
	}
}

// Leave ends a request.
func (k *Key) Leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.live--; k.live < 0 {
		k.live = 0
	}
}

// Named is the configured key of that name, or one without limits: a filter that
// knows keys of its own accounts to them.
func (r *Ring) Named(name string) *Key {
	if k := r.Configured(name); k != nil {
		return k
	}
	return &Key{Name: name, use: &use{}, Cfg: configs.Key{Name: name, Models: []string{"*"}, Weight: 1}}
}
