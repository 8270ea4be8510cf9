package usage

import (
	"fmt"
	"math"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/surface"
	"roundhouse/configs"
)

// Left is one figure of a budget.
type Left struct {
	Period string // "day" or "month"
	Kind   string // "requests", "tokens", "tokens_in" or "tokens_out"
	Limit  int64
	Used   int64
	Resets time.Time
}

// Budgets are the figures of a key's budgets.
func (b *Book) Budgets(k *configs.Key, now time.Time) (out []Left) {
	if k.Day == (configs.Budget{}) && k.Month == (configs.Budget{}) {
		return nil
	}
	b.lock()
	defer b.mu.Unlock()
	b.turn(now)
	day, month := b.of(k.Name)
	tomorrow, next := b.resets()
	out = figures(out, "day", &k.Day, &day, tomorrow)
	return figures(out, "month", &k.Month, &month, next)
}

// Resets is when the present day and the present month end.
func (b *Book) Resets(now time.Time) (day, month time.Time) {
	b.lock()
	defer b.mu.Unlock()
	b.turn(now)
	return b.resets()
}

func (b *Book) resets() (day, month time.Time) {
	y, m, _ := b.next.Add(-time.Minute).In(b.zone).Date()
	return b.next, time.Date(y, m+1, 1, 0, 0, 0, 0, b.zone)
}

func figures(out []Left, period string, limit *configs.Budget, used *control.Used, resets time.Time) []Left {
	for _, k := range control.BudgetKinds(limit) {
		out = append(out, Left{Period: period, Kind: k.Kind, Limit: k.Limit, Used: used.Of(k.Kind), Resets: resets})
	}
	return out
}

// words are the kinds in a sentence.
var words = map[string]string{"requests": "requests", "tokens": "tokens", "tokens_in": "tokens of prompts", "tokens_out": "tokens of answers"}

// Refuse refuses a request of a key that has used up a budget; live are its requests
// that have yet to be counted.
func (b *Book) Refuse(k *configs.Key, live int, now time.Time) *surface.Failure {
	for _, l := range b.Budgets(k, now) {
		used := l.Used
		if l.Kind == "requests" {
			used += int64(live)
		}
		if used < l.Limit {
			continue
		}
		return &surface.Failure{Status: 429, Type: "insufficient_quota", Code: "insufficient_quota", Reason: "key_limit",
			RetryAfter: max(1, int(math.Ceil(l.Resets.Sub(now).Seconds()))),
			Message:    fmt.Sprintf("key %q has used up its budget of %d %s a %s; it begins anew at %s", k.Name, l.Limit, words[l.Kind], l.Period, l.Resets.Format(time.RFC3339))}
	}
	return nil
}
