package control

import (
	"time"

	"roundhouse/configs"
)

// KeysUse is what a door knows of the use of its keys, at all doors.
type KeysUse struct {
	Timezone string    `json:"timezone"`
	Day      time.Time `json:"day_resets"`
	Month    time.Time `json:"month_resets"`
	Keys     []KeyUsed `json:"keys"`
}

// KeyUsed is what one key has used.
type KeyUsed struct {
	Name  string `json:"name"`
	Day   Used   `json:"day"`
	Month Used   `json:"month"`
	Live  int    `json:"live"` // requests under way
}

// The shapes of /api/keys.
type (
	// KeysShown is GET /api/keys.
	KeysShown struct {
		Schema   int        `json:"schema"`
		At       time.Time  `json:"at"`
		Asked    bool       `json:"asked"`    // clients need a key
		Timezone string     `json:"timezone"` // of days and months
		Faults   []string   `json:"faults"`   // of the file of keys made at run time
		Keys     []KeyShown `json:"keys"`
	}

	// KeyShown is one key, without what opens it.
	KeyShown struct {
		Name              string        `json:"name"`
		Source            string        `json:"source"`   // "configuration" or "made", at run time
		Shadowed          bool          `json:"shadowed"` // the configuration has a key of that name, which holds instead
		Created           *time.Time    `json:"created"`
		By                *string       `json:"by"`
		Expires           *time.Time    `json:"expires"`
		Expired           bool          `json:"expired"`
		Models            []string      `json:"models"`
		Pools             []string      `json:"pools"` // none: all
		RequestsPerMinute int           `json:"requests_per_minute"`
		TokensPerMinute   int           `json:"tokens_per_minute"`
		MaxConcurrent     int           `json:"max_concurrent"`
		Priority          string        `json:"priority"`
		Weight            int           `json:"weight"`
		Budgets           []BudgetShown `json:"budgets"`
		UsedDay           *Used         `json:"used_day"`
		UsedMonth         *Used         `json:"used_month"`
		Live              *int          `json:"live"`
	}

	// BudgetShown is one figure of a budget.
	BudgetShown struct {
		Period string     `json:"period"` // "day" or "month"
		Kind   string     `json:"kind"`   // "requests", "tokens", "tokens_in" or "tokens_out"
		Limit  int64      `json:"limit"`
		Used   *int64     `json:"used"`
		Left   *int64     `json:"left"` // 0, not less
		Resets *time.Time `json:"resets"`
	}

	// KeyAdded answers POST /api/keys.
	KeyAdded struct {
		Schema int    `json:"schema"`
		Name   string `json:"name"`
		Key    string `json:"key,omitempty"` // where it was made here: it is shown this once
		SHA256 string `json:"sha256"`
		First  bool   `json:"first"` // before it, the door asked for none
		Taken
	}

	// KeyRemoved answers DELETE /api/keys/{name}.
	KeyRemoved struct {
		Schema int    `json:"schema"`
		Name   string `json:"name"`
		Left   int    `json:"left"` // keys there are yet, the configuration's included
		Live   *int   `json:"live"` // requests of it that are under way, and go on
		Taken
	}

	// Taken tells how many doors have taken up a change when it is answered, and which
	// have yet to: they do as soon as they answer.
	Taken struct {
		Doors   int      `json:"doors"`
		Waiting []string `json:"waiting"`
	}
)

// Of is what a budget's kind of use comes to.
func (u Used) Of(kind string) int64 {
	switch kind {
	case "requests":
		return u.Requests
	case "tokens":
		return u.TokensIn + u.TokensOut
	case "tokens_in":
		return u.TokensIn
	default:
		return u.TokensOut
	}
}

// BudgetKinds are the figures of a budget, as they are shown.
func BudgetKinds(b *configs.Budget) []BudgetShown {
	var out []BudgetShown
	for _, k := range []BudgetShown{{Kind: "requests", Limit: b.Requests}, {Kind: "tokens", Limit: b.Tokens}, {Kind: "tokens_in", Limit: b.TokensIn}, {Kind: "tokens_out", Limit: b.TokensOut}} {
		if k.Limit > 0 {
			out = append(out, k)
		}
	}
	return out
}
