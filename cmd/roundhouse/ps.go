package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
)

// psCommand shows the door, the pools and their workers.
func psCommand(c *console) *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:     "ps",
		Short:   "Show the door, the pools and the workers",
		GroupID: groupLook,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := f.client(c)
			if err != nil {
				return err
			}
			top, pools, err := a.pools(cmd.Context())
			if err != nil {
				return err
			}
			workers, err := a.workers(cmd.Context())
			if err != nil {
				return err
			}
			if f.json {
				return c.printJSON(psAnswer{1, workers.At, top.Door, top.Supervisor, top.Pools, workers.Raw, top.Canaries})
			}
			return c.printPS(top, pools, workers)
		},
	}
	f.add(cmd)
	return cmd
}

// psAnswer is what `ps --json` prints.
type psAnswer struct {
	Schema     int             `json:"schema"`
	At         time.Time       `json:"at"`
	Door       json.RawMessage `json:"door"`
	Supervisor json.RawMessage `json:"supervisor"`
	Pools      json.RawMessage `json:"pools"`
	Workers    json.RawMessage `json:"workers"`

	Canaries []control.CanaryShown `json:"canaries,omitempty"`
}

func (c *console) printPS(top poolsAnswer, pools []poolAnswer, workers workersAnswer) error {
	var door control.DoorShown
	if err := json.Unmarshal(top.Door, &door); err != nil {
		return fmt.Errorf("the door in the answer: %w", err)
	}
	var supervisor control.SupervisorShown
	if err := json.Unmarshal(top.Supervisor, &supervisor); err != nil {
		return fmt.Errorf("the supervisor in the answer: %w", err)
	}
	t := newTable(c.out)
	t.row("DOOR", "LISTEN", "STREAMS", "QUEUED", "VERSION")
	t.row(door.State, orDash(door.Listen), door.Streams, door.Queued, orDash(door.Version))
	for _, f := range door.Faults {
		t.row("")
		t.row(fmt.Sprintf("%s: not taken up since %s, the old one stays: %s", strings.ReplaceAll(f.What, "_", " "), f.Since.UTC().Format("15:04:05 UTC"), f.Error))
	}
	if supervisor.State != string(phase.Ready) && supervisor.State != "" { // none: the door runs alone
		t.row("")
		t.row("the supervisor: " + supervisor.State)
	}
	t.row("")
	t.row("POOL", "READY", "POLICY", "ROTATION")
	for _, p := range pools {
		t.row(p.Name, fmt.Sprintf("%d/%d", p.Ready, p.Desired), p.Policy, p.rotation(top.At))
	}
	if len(top.Canaries) > 0 {
		t.row("")
		canaryRows(t, top.Canaries, func(string) bool { return true })
	}
	t.row("")
	t.row("WORKER", "STATE", "KV", "IN FLIGHT", "WAITING", "RESTARTS", "SINCE", "WHY")
	for _, w := range workers.Workers {
		t.row(w.ID, w.State, w.kv(), w.Requests.InFlight, orUnknown(w.Requests.Waiting), w.Restarts,
			ago(workers.At.Sub(w.Since)), w.why())
	}
	return t.flush()
}

func (p poolAnswer) rotation(now time.Time) string {
	r := p.Rotation
	text := r.State
	if r.LastResult != nil && *r.LastResult != r.State {
		text += ", last " + strings.ReplaceAll(*r.LastResult, "_", " ")
		if r.Last != nil {
			text += " " + ago(now.Sub(*r.Last)) + " ago"
		}
	}
	if r.Next != nil {
		text += ", next in " + ago(r.Next.Sub(now))
	}
	return text
}

// kv is how full a worker's cache is: "18 % of 114432".
func (w workerAnswer) kv() string {
	if w.KV.CapacityTokens == nil || w.KV.Usage == nil {
		return "?"
	}
	return fmt.Sprintf("%.0f %% of %d", 100**w.KV.Usage, *w.KV.CapacityTokens)
}

func (w workerAnswer) why() string {
	switch {
	case w.Drain != nil && w.Drain.Deadline != nil:
		return fmt.Sprintf("%s; until %s", orDash(w.Reason), w.Drain.Deadline.UTC().Format("15:04:05 UTC"))
	case w.NextTry != nil && w.LastError != nil:
		return fmt.Sprintf("%s; next try %s", *w.LastError, w.NextTry.UTC().Format("15:04:05 UTC"))
	case w.State == phase.Ready:
		return orDash(w.LastError) // an adapter that is not loaded
	}
	return orDash(w.Reason)
}

// ago is a length of time as people say it, in one unit.
func ago(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func orDash(s *string) string {
	if s == nil || *s == "" {
		return "-"
	}
	return *s
}

func orUnknown(n *int) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

// table prints rows in columns, without blanks at the end of a line.
type table struct {
	out io.Writer
	buf strings.Builder
	tab *tabwriter.Writer
}

func newTable(out io.Writer) *table {
	t := &table{out: out}
	t.tab = tabwriter.NewWriter(&t.buf, 0, 8, 2, ' ', 0)
	return t
}

func (t *table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = printable(fmt.Sprint(cell))
	}
	fmt.Fprintln(t.tab, strings.Join(texts, "\t"))
}

func (t *table) flush() error {
	if err := t.tab.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.buf.String()) {
		if _, err := fmt.Fprintln(t.out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// printable keeps what a worker or a client wrote from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}
