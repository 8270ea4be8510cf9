package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/measure/diagnose"
)

// diagnoseFlags say where the figures come from.
type diagnoseFlags struct {
	adminFlags
	length     time.Duration
	history    time.Duration
	bundle     string
	prometheus string
	failOn     string
	now        bool
}

// diagnoseCommand says what ails a service and which setting mends it.
func diagnoseCommand(c *console) *cobra.Command {
	var f diagnoseFlags
	cmd := &cobra.Command{
		Use:   "diagnose",
		Short: "Find what ails the service, and the setting that mends it",
		Long: `Find what ails the service: what was seen, its cause, the setting as it is and as
it should be, the command, and how to see that it helped. It looks at the
metrics of doors and workers for a minute; --now takes what the supervisor has
seen in the last five minutes, --history its series of hours, --bundle what doctor
has saved, --prometheus a store of metrics. It changes nothing.
docs/diagnose.md tells of each rule.`,
		GroupID: groupLook,
		Args:    usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.diagnose(cmd.Context(), &f) },
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&f.length, "for", time.Minute, "how long to look")
	cmd.Flags().BoolVar(&f.now, "now", false, "what the supervisor has found by itself, at once")
	cmd.Flags().DurationVar(&f.history, "history", 0, "look at the supervisor's series of so long, e.g. 24h")
	cmd.Flags().StringVar(&f.bundle, "bundle", "", "look at a file of `roundhouse doctor --bundle`")
	cmd.Flags().StringVar(&f.prometheus, "prometheus", "", "look at the last hours (--history, or 1h) of this Prometheus, e.g. http://127.0.0.1:9090")
	cmd.Flags().StringVar(&f.failOn, "fail-on", "", "info, warn or critical: end with code 1 if a finding is as bad")
	return cmd
}

// diagnose gathers a recording, judges it and prints the report.
func (c *console) diagnose(ctx context.Context, f *diagnoseFlags) error {
	if f.failOn != "" && !slices.Contains([]string{"info", "warn", "critical"}, f.failOn) {
		return usageError("diagnose: --fail-on %q: want info, warn or critical", f.failOn)
	}
	report, err := c.diagnosis(ctx, f)
	if err != nil {
		return err
	}
	if f.json {
		err = c.printJSON(report)
	} else {
		err = printDiagnosis(c.out, &report)
	}
	if err == nil && f.failOn != "" && len(report.Findings) > 0 && report.Worst().AtLeast(diagnose.Severity(f.failOn)) {
		return &codedError{exitFailed, errSaid}
	}
	return err
}

// diagnosis is the report of the source that the flags name.
func (c *console) diagnosis(ctx context.Context, f *diagnoseFlags) (report diagnose.Report, err error) {
	if f.bundle != "" {
		r, facts, err := readBundle(f.bundle)
		if err != nil {
			return report, err
		}
		return diagnose.Judge(r, nil, facts, &diagnose.Defaults), nil
	}
	a, err := f.client(c)
	if err != nil {
		return report, err
	}
	if f.now {
		err := a.ask(ctx, http.MethodGet, "/api/diagnosis", nil, &report)
		return report, err
	}
	if f.prometheus != "" {
		r, err := fromPrometheus(ctx, f.prometheus, max(f.history, time.Hour))
		if err != nil {
			return report, fmt.Errorf("diagnose: %s: %w", f.prometheus, err)
		}
		facts := &diagnose.Facts{}
		if x, err := a.facts(ctx); err == nil { // a store of metrics may be all that is left
			facts = x
		}
		return diagnose.Judge(r, nil, facts, &diagnose.Defaults), nil
	}
	facts, err := a.facts(ctx)
	if err != nil {
		return report, err
	}
	if f.history > 0 {
		r, err := a.history(ctx, f.history)
		if err != nil {
			return report, err
		}
		return diagnose.Judge(r, nil, facts, &diagnose.Defaults), nil
	}
	r, err := a.record(ctx, f.length, c.err)
	if err != nil {
		return report, err
	}
	if again, err := a.facts(ctx); err == nil { // the requests that are under way by now
		facts = again
	}
	return diagnose.Judge(r, nil, facts, &diagnose.Defaults), nil
}

// record looks at the metrics for some time, at least three times. Ctrl-C ends it early.
func (a *client) record(ctx context.Context, length time.Duration, progress io.Writer) (*diagnose.Recording, error) {
	if length <= 0 {
		return nil, usageError("diagnose: --for is %v; want a time, e.g. 60s", length)
	}
	every := min(5*time.Second, length/3)
	tick := time.NewTicker(every)
	defer tick.Stop()
	r, began := &diagnose.Recording{}, time.Now()
	for {
		text, err := a.text(ctx, "/metrics")
		if err != nil {
			return nil, err
		}
		r.Add(time.Now().UTC(), text)
		left := length - time.Since(began)
		if left <= 0 {
			return r, nil
		}
		if isTerminal(progress) {
			fmt.Fprintf(progress, "\rlooking for %.0f s more ", left.Seconds())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// text is an answer of the admin API that is no JSON.
func (a *client) text(ctx context.Context, path string) (string, error) {
	stream, err := a.open(ctx, http.MethodGet, path, nil)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, 256<<20))
	if err != nil {
		return "", fmt.Errorf("the answer of %s broke off: %w", a.where, err)
	}
	return string(text), nil
}

// printDiagnosis prints a report for people.
func printDiagnosis(out io.Writer, r *diagnose.Report) error {
	var b strings.Builder
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintf(&b, "%s  %s  %s\n", strings.ToUpper(string(f.Severity)), printable(f.Object), f.Rule)
		line := func(name, text string) {
			if text != "" {
				fmt.Fprintf(&b, "  %-9s %s\n", name, strings.ReplaceAll(printable(text), "\n", "\n            "))
			}
		}
		line("seen", f.Says)
		line("cause", f.Cause)
		line("part of", f.CausedBy)
		var shown []string
		for _, e := range f.Evidence {
			shown = append(shown, e.Name+" "+e.Text)
		}
		line("by", strings.Join(shown, "; "))
		if f.Confidence != diagnose.High {
			line("sure", string(f.Confidence)+": not all of it is in the metrics")
		}
		if f.Change != nil {
			b.WriteString(indent("now", f.Change.Now) + indent("proposed", f.Change.Proposed))
			line("vLLM", f.Change.VLLM)
		}
		line("do", f.Command)
		line("helped if", f.Helped)
		b.WriteByte('\n')
	}
	if len(r.Findings) == 0 {
		fmt.Fprintf(&b, "no finding of %d rules on %s\n", len(diagnose.RuleNames())-len(r.Unjudged), count(len(r.Workers), "worker"))
	}
	for _, u := range r.Unjudged {
		fmt.Fprintf(&b, "not judged: %s: %s\n", u.Rule, u.Why)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// indent is a block of HCL under its name.
func indent(name, block string) string {
	var b strings.Builder
	for i, line := range strings.Split(block, "\n") {
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(&b, "  %-9s %s\n", name, printable(line))
	}
	return b.String()
}

// readJSON decodes a part of a bundle, if it is JSON at all: what could not be had says why.
func readJSON(text []byte, into any) bool { return json.Unmarshal(text, into) == nil }

// errNoMetrics reports a source without anything to judge by.
var errNoMetrics = errors.New("it has no metrics of roundhouse or of vLLM")
