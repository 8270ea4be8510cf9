package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"roundhouse/balancer/control"
)

// reasons are the words for why a worker was chosen.
var reasons = map[string]string{
	"least":     "it would be least full",
	"tie":       "several were equal, and it was its turn",
	"prefix":    "it has the most of the prompt in its cache",
	"sticky":    "the session is there",
	"only":      "no other could take it",
	"no_report": "without a report to go by",
}

// explainCommand says why a request went where it did.
func explainCommand(c *console) *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:   "explain REQUEST-ID",
		Short: "Say why a request went to its worker",
		Long: `Say why a request went to its worker: the candidates and their accounts at that
moment. The id is the x-request-id of its answer.`,
		GroupID: groupLook,
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := f.client(c)
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := a.ask(cmd.Context(), http.MethodGet, "/api/decisions"+escaped(args[0]), nil, &raw); err != nil {
				return err
			}
			if f.json {
				return c.relayed(raw)
			}
			var d control.Decision
			if err := json.Unmarshal(raw, &d); err != nil {
				return fmt.Errorf("%s: the decision in its answer: %w", a.where, err)
			}
			return c.printDecision(d)
		},
	}
	f.add(cmd)
	return cmd
}

func (c *console) printDecision(d control.Decision) error {
	fmt.Fprintf(c.out, "request %s, %s, pool %s, policy %s\n", printable(d.Request), d.At.UTC().Format(stamp), d.Pool, d.Policy)
	because := reasons[d.Reason]
	if because == "" {
		because = d.Reason
	}
	fmt.Fprintf(c.out, "went to %s: %s\n", d.Chosen, because)
	if d.RunnerUp != "" {
		fmt.Fprintf(c.out, "the next best was %s\n", d.RunnerUp)
	}
	fmt.Fprintf(c.out, "it needs %d tokens (prompt and expected answer)\n\n", d.Need)
	t := newTable(c.out)
	t.row("WORKER", "SCORE", "CAPACITY", "CHARGED", "FOREIGN", "PREFILL", "PREFIX", "FIRST TOKEN", "REPORT AGE", "")
	for _, w := range d.Candidates {
		t.row(w.Worker, fmt.Sprintf("%.4g", w.Score), tokens(w.CapacityTokens), w.ChargedTokens, w.ForeignTokens, w.PrefillTokens,
			w.PrefixTokens, seconds(w.PredictedTTFT), seconds(w.ReportAgeSeconds), w.Excluded)
	}
	return t.flush()
}

func tokens(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

func seconds(s *float64) string {
	if s == nil {
		return "?"
	}
	return fmt.Sprintf("%.3gs", *s)
}
