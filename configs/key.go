package configs

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Key is one client's key and its rights.
type Key struct {
	Name              string   `json:"name"`
	SHA256            []string `json:"sha256"`                // hex; several, so that old and new overlap
	Models            []string `json:"models"`                // "*" for all
	Pools             []string `json:"pools,omitempty"`       // none: all
	RequestsPerMinute int      `json:"requests_per_minute"`   // 0: no limit
	TokensPerMinute   int      `json:"tokens_per_minute"`     // 0: no limit
	MaxConcurrent     int      `json:"max_concurrent"`        // 0: no limit
	Priority          string   `json:"priority"`              // "high", "normal" or "low"
	Weight            int      `json:"weight"`                // share among the keys of one priority
	Expires           string   `json:"expires,omitempty"`     // RFC 3339; empty: never
	Day               Budget   `json:"day_budget,omitzero"`   // of a day
	Month             Budget   `json:"month_budget,omitzero"` // of a calendar month
}

// Budget is the most that a key may use in one day or month, counted when it is answered. 0 is no
// limit.
type Budget struct {
	Requests  int64 `json:"requests,omitempty"`
	Tokens    int64 `json:"tokens,omitempty"`     // of prompts and answers together
	TokensIn  int64 `json:"tokens_in,omitempty"`  // of prompts
	TokensOut int64 `json:"tokens_out,omitempty"` // of answers
}

// NewKey is a key with all that is left out filled in.
func NewKey(name string) Key {
	return Key{Name: name, Models: []string{"*"}, Priority: "normal", Weight: 1}
}

// mostHashes bounds the hashes of one key: old and new, with room to spare.
const mostHashes = 64

// Fault returns the fault of a key that was not read from a file; empty: none.
func (k *Key) Fault() string {
	switch _, err := k.Expiry(); {
	case !goodKeyName(k.Name):
		return fmt.Sprintf("name %q: write 1 to 128 letters, digits and ._-@:/ that begin with a letter or a digit", k.Name)
	case len(k.SHA256) == 0 || len(k.SHA256) > mostHashes || slices.ContainsFunc(k.SHA256, func(s string) bool { return !goodSum(s) }):
		return fmt.Sprintf("sha256: give one to %d hashes of 64 hexadecimal digits", mostHashes)
	case len(k.Models) == 0:
		return `models is empty, so the key could ask for nothing; "*" is all`
	case err != nil:
		return err.Error()
	case !slices.Contains([]string{"high", "normal", "low"}, k.Priority):
		return fmt.Sprintf("priority is %q; it is one of high, normal, low", k.Priority)
	case k.Weight < 1 || k.Weight > maxWeight:
		return fmt.Sprintf("weight is %d; it is a whole number from 1 to %d", k.Weight, maxWeight)
	case min(k.RequestsPerMinute, k.TokensPerMinute, k.MaxConcurrent) < 0:
		return "a limit below 0; leave it out for none"
	case k.Day.least() < 0 || k.Month.least() < 0:
		return "a budget below 0; leave it out for none"
	}
	return ""
}

const maxWeight = 1_000_000

func (b *Budget) least() int64 { return min(b.Requests, b.Tokens, b.TokensIn, b.TokensOut) }

// Expiry is when the key is over; zero: never.
func (k *Key) Expiry() (time.Time, error) {
	if k.Expires == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, k.Expires)
	if err != nil {
		return time.Time{}, fmt.Errorf(`expires is %q; write a time such as "2027-01-31T00:00:00Z"`, k.Expires)
	}
	return at, nil
}

// BudgetZone is where days and months of budgets begin.
func (c *Door) BudgetZone() (*time.Location, error) {
	zone, err := time.LoadLocation(c.BudgetTimezone) // "" is UTC
	if err != nil || c.BudgetTimezone == "Local" {
		return time.UTC, fmt.Errorf(`budget_timezone is %q; write an IANA name such as "Europe/Berlin"`, c.BudgetTimezone)
	}
	return zone, nil
}

// goodSum accepts a SHA-256 in hexadecimal digits.
func goodSum(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32
}

// goodKeyName accepts names that can stand in a log, a metric's label and a path.
func goodKeyName(s string) bool {
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' }
	return s != "" && len(s) <= 128 && letter(rune(s[0])) && !strings.ContainsFunc(s, func(r rune) bool {
		return !letter(r) && !strings.ContainsRune("._-@:/", r)
	})
}
