package balancer

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"roundhouse/configs"
)

// keyring holds the keys that clients may show. An empty one asks for none.
type keyring struct {
	keys []*key
}

// key is one client's key, as configured, with what it has used.
type key struct {
	name   string
	cfg    configs.Key
	hashes [][sha256.Size]byte
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
	level float64
	at    time.Time
}

// fill brings the level up to now.
func (b *bucket) fill(limit float64, now time.Time) {
	if b.at.IsZero() {
		b.level = limit
	} else {
		b.level = math.Min(limit, b.level+limit*now.Sub(b.at).Minutes())
	}
	b.at = now
}

// wait is how long until the level is above zero, in whole seconds, at most a
// day.
func (b *bucket) wait(limit float64) int {
	return max(1, int(math.Ceil(math.Min(86400, (1-b.level)/limit*60))))
}

// newKeyring reads the keys of a configuration; one that was there before
// keeps what it has used.
func newKeyring(cfgs []configs.Key, old *view) (*keyring, error) {
	r := &keyring{}
	for _, c := range cfgs {
		k := &key{name: c.Name, cfg: c, use: &use{}}
		for _, h := range c.SHA256 {
			raw, err := hex.DecodeString(h)
			if err != nil || len(raw) != sha256.Size {
				return nil, fmt.Errorf("key %q: sha256 must be 64 hexadecimal digits", c.Name)
			}
			k.hashes = append(k.hashes, [sha256.Size]byte(raw))
		}
		if old.keys != nil {
			for _, o := range old.keys.keys {
				if o.name == c.Name {
					k.use = o.use
				}
			}
		}
		r.keys = append(r.keys, k)
	}
	return r, nil
}

// configured is the key of that name, nil if there is none.
func (r *keyring) configured(name string) *key {
	for _, k := range r.keys {
		if k.name == name {
			return k
		}
	}
	return nil
}

// find returns the key that a client shows. All are compared, each in constant
// time, so that the time tells nothing.
func (r *keyring) find(authorization, xAPIKey string) *key {
	shown := xAPIKey
	if rest, ok := cutBearer(authorization); ok {
		shown = rest
	}
	if shown == "" || len(shown) > 4096 {
		return nil
	}
	sum := sha256.Sum256([]byte(shown))
	var found *key
	for _, k := range r.keys {
		for i := range k.hashes {
			if subtle.ConstantTimeCompare(sum[:], k.hashes[i][:]) == 1 {
				found = k
			}
		}
	}
	return found
}

func cutBearer(s string) (string, bool) {
	if len(s) > 7 && strings.EqualFold(s[:7], "bearer ") {
		return strings.TrimSpace(s[7:]), true
	}
	return "", false
}

// allows reports whether the key may use a model.
func (k *key) allows(model string) bool {
	return len(k.cfg.Models) == 0 || slices.Contains(k.cfg.Models, "*") || slices.Contains(k.cfg.Models, model)
}

// enter counts a request against the key's limits, or says which is used up.
func (k *key) enter(now time.Time) *failure {
	k.mu.Lock()
	defer k.mu.Unlock()
	over := func(what string, limit, after int) *failure {
		return &failure{status: 429, typ: "rate_limit_error", code: "rate_limit_exceeded", reason: "key_limit", retryAfter: after,
			message: fmt.Sprintf("key %q has used up its %s (%d)", k.name, what, limit)}
	}
	if limit := k.cfg.MaxConcurrent; limit > 0 && k.live+k.elsewhere >= limit {
		return over("concurrent requests", limit, 1)
	}
	if limit := k.cfg.TokensPerMinute; limit > 0 {
		if k.tokens.fill(float64(limit), now); k.tokens.level < 1 {
			return over("tokens a minute", limit, k.tokens.wait(float64(limit)))
		}
	}
	if limit := k.cfg.RequestsPerMinute; limit > 0 {
		if k.requests.fill(float64(limit), now); k.requests.level < 1 {
			return over("requests a minute", limit, k.requests.wait(float64(limit)))
		}
		k.requests.level--
	}
	k.live++
	k.entered++
	return nil
}

// charge takes tokens from the key, or gives them back where tokens is below
// zero. The level may sink far below zero; it saturates long before it could
// wrap.
func (k *key) charge(tokens int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spent += tokens
	k.take(tokens)
}

// take takes tokens out of the bucket. k.mu is held.
func (k *key) take(tokens int64) {
	if limit := float64(k.cfg.TokensPerMinute); limit > 0 {
		k.tokens.level = math.Max(-1e15, math.Min(limit, k.tokens.level-float64(tokens)))
	}
}

// usedElsewhere counts what other doors have let through since they last said,
// and how many of the key's requests run there.
func (k *key) usedElsewhere(requests uint64, tokens int64, live int, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if limit := float64(k.cfg.RequestsPerMinute); limit > 0 {
		k.requests.fill(limit, now)
		k.requests.level = math.Max(-limit, k.requests.level-float64(requests))
	}
	if limit := float64(k.cfg.TokensPerMinute); limit > 0 {
		k.tokens.fill(limit, now)
		k.take(tokens)
	}
	k.elsewhere = live
}

// levels are what is left in the buckets; nil for one that was never used.
func (k *key) levels(now time.Time) (requests, tokens *float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	level := func(b *bucket, limit int) *float64 {
		if limit == 0 || b.at.IsZero() {
			return nil
		}
		b.fill(float64(limit), now)
		v := b.level
		return &v
	}
	return level(&k.requests, k.cfg.RequestsPerMinute), level(&k.tokens, k.cfg.TokensPerMinute)
}

// takeLevels takes over what another door has left in the buckets.
func (k *key) takeLevels(requests, tokens *float64, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if requests != nil {
		k.requests = bucket{level: *requests, at: now}
	}
	if tokens != nil {
		k.tokens = bucket{level: *tokens, at: now}
	}
}

// leave ends a request.
func (k *key) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.live--; k.live < 0 {
		k.live = 0
	}
}
