package control

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// Used is what was used of the engines.
type Used struct {
	Requests     int64 `json:"requests"`
	TokensIn     int64 `json:"tokens_in"`
	TokensCached int64 `json:"tokens_cached"` // of those in
	TokensOut    int64 `json:"tokens_out"`
}

// Add counts more.
func (u *Used) Add(v Used) {
	u.Requests += v.Requests
	u.TokensIn += v.TokensIn
	u.TokensCached += v.TokensCached
	u.TokensOut += v.TokensOut
}

// Most is the larger of each.
func (u Used) Most(v Used) Used {
	return Used{Requests: max(u.Requests, v.Requests), TokensIn: max(u.TokensIn, v.TokensIn),
		TokensCached: max(u.TokensCached, v.TokensCached), TokensOut: max(u.TokensOut, v.TokensOut)}
}

// UsageRow is what a key has used of a model in one day.
type UsageRow struct {
	Day   string `json:"day"`
	Key   string `json:"key"` // empty: the door asked for none
	Model string `json:"model"`
	Used
}

// Usage is GET /api/usage: rows in the order of days, keys and models.
type Usage struct {
	Schema   int        `json:"schema"`
	Folder   string     `json:"folder,omitempty"` // where it is kept: doors of one folder tell the same
	Timezone string     `json:"timezone"`
	From     string     `json:"from"`
	To       string     `json:"to"`
	Rows     []UsageRow `json:"rows"`
}

// CheckDays refuses a from or to that is no day.
func CheckDays(q url.Values) error {
	for _, name := range []string{"from", "to"} {
		if day := q.Get(name); day != "" {
			if _, err := time.Parse(time.DateOnly, day); err != nil {
				return fmt.Errorf("%s: %q is no day; write 2026-11-22", name, day)
			}
		}
	}
	return nil
}

// SumUsage joins what several folders tell.
func SumUsage(all []Usage) Usage {
	sums := map[[3]string]*UsageRow{}
	folders := map[string]bool{}
	out := Usage{Schema: 1, Rows: []UsageRow{}}
	for _, u := range all {
		if folders[u.Folder] {
			continue
		}
		folders[u.Folder] = true
		out.Timezone, out.From, out.To = u.Timezone, u.From, u.To
		for _, r := range u.Rows {
			at := [3]string{r.Day, r.Key, r.Model}
			if sums[at] == nil {
				sums[at] = &UsageRow{Day: r.Day, Key: r.Key, Model: r.Model}
			}
			sums[at].Add(r.Used)
		}
	}
	for _, r := range sums {
		out.Rows = append(out.Rows, *r)
	}
	SortUsage(out.Rows)
	return out
}

// SortUsage puts rows in the order of days, keys and models.
func SortUsage(rows []UsageRow) {
	slices.SortFunc(rows, func(a, b UsageRow) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Model, b.Model))
	})
}

// FolderUse is what keys with a budget have used today and this month, as one folder
// keeps it. Doors of one folder tell the same; of two tellings the larger holds.
type FolderUse struct {
	Folder string      `json:"folder"`
	Day    string      `json:"day"`
	Keys   []BudgetUse `json:"keys"`
}

// BudgetUse is what one key has used.
type BudgetUse struct {
	Name  string `json:"name"`
	Day   Used   `json:"day"`
	Month Used   `json:"month"` // of Day
}
