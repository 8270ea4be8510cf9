package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/balancer/sim"
	"roundhouse/configs"
	"roundhouse/measure/bench"
	"roundhouse/measure/stat"
	"roundhouse/measure/tune"
)

// tuneFlags are simulate's, and what is done beyond it.
type tuneFlags struct {
	simulateFlags
	file     string
	admin    adminFlags
	measure  bool
	canary   bool
	engine   string
	finalist int
	runs     int
	workers  int
}

// tuneCommand looks for better settings of a pool's engines.
func tuneCommand(c *console) *cobra.Command {
	f := tuneFlags{simulateFlags: simulateFlags{command: "tune"}}
	cmd := &cobra.Command{
		Use:   "tune -c FILE POOL",
		Short: "Look for engine settings that serve your traffic better, and show the change",
		Long: `Look for settings of a pool's engines (--max-num-seqs, --max-num-batched-tokens) that
serve some traffic better than the present ones: arithmetic throws out what cannot be,
simulation the worse half again and again (--speed: constants of simulate --fit), and with
--measure the best few run in turns with the present ones. Proposed is only what gains 3 %
or more at the lower bound of the 95 % interval. The change of the configuration is
printed as a diff. Nothing is changed, unless --canary asks for it.

  roundhouse simulate --fit http://127.0.0.1:8010 --speed mine.json
  roundhouse tune -c roundhouse.hcl chat --speed mine.json --trace conversations.jsonl
  roundhouse tune -c roundhouse.hcl chat --speed mine.json --request-rate 4 --measure`,
		GroupID: groupLook,
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runTune(cmd.Context(), c, &f, args[0])
		},
	}
	s := cmd.Flags()
	f.traffic(s)
	s.StringVarP(&f.file, "config", "c", "", "the configuration file")
	s.StringVar(&f.admin.addr, "admin", "", "of --canary: the admin API, if the file does not say")
	s.BoolVar(&f.measure, "measure", false, "start an engine with each of the best settings here, in turns, and measure it")
	s.StringVar(&f.engine, "engine", "", "of --measure: the command that starts an engine, with {port} and {args} in it (default: this worker's program, for pools of our own engine)")
	s.IntVar(&f.finalist, "best", 3, "of --measure: how many settings beside the present ones")
	s.IntVar(&f.runs, "runs", 3, "of --measure: runs of each")
	s.BoolVar(&f.canary, "canary", false, "of --measure: write the change and reload; the pool's canary block judges it on one worker first")
	return cmd
}

// tuned is what a pool's tuning came to.
type tuned struct {
	Schema    int            `json:"schema"`
	Pool      string         `json:"pool"`
	Present   tune.Settings  `json:"present"`
	Refused   []tune.Refused `json:"refused"`
	Simulated []tune.Played  `json:"simulated"`
	Measured  []tune.Judged  `json:"measured"`
	Proposed  *tune.Settings `json:"proposed"`
	Reason    string         `json:"reason"`
	Diff      string         `json:"diff"`
}

// tuning is one run of tune.
type tuning struct {
	*tuneFlags
	c     *console
	pool  *configs.Pool
	speed sim.Speed
	jobs  []sim.Job // what one worker gets
	goal  bench.Goal
}

func runTune(ctx context.Context, c *console, f *tuneFlags, pool string) error {
	t, err := newTuning(c, f, pool)
	if err != nil {
		return err
	}
	out := tuned{Schema: 1, Pool: pool, Present: t.present(), Refused: []tune.Refused{}, Measured: []tune.Judged{}}
	space, refused := tune.Space(tune.Facts{Present: out.Present, Capacity: t.speed.Capacity, Median: t.median()})
	out.Refused = append(out.Refused, refused...)
	out.Simulated = tune.Halve(space, f.finalist, t.play)
	switch {
	case !f.measure:
		out.Reason = t.simulatedReason(&out)
	default:
		if err := t.measureBest(ctx, &out); err != nil {
			return err
		}
	}
	if out.Proposed != nil {
		if err := t.change(ctx, &out); err != nil {
			return err
		}
	}
	if f.json {
		return c.printJSON(out)
	}
	t.print(&out)
	return nil
}

// newTuning reads the flags, the file and the traffic.
func newTuning(c *console, f *tuneFlags, pool string) (*tuning, error) {
	if f.file == "" {
		return nil, usageError("tune: -c FILE: the configuration whose pool is tuned")
	}
	if f.finalist < 1 || f.finalist > 5 || f.runs < 2 || f.runs > 20 {
		return nil, usageError("tune: --best is 1 to 5, --runs 2 to 20: one run shows nothing")
	}
	if f.canary && !f.measure {
		return nil, usageError("tune: --canary wants --measure: what is only simulated goes to no worker")
	}
	cfg, err := c.load(f.file)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(cfg.Pools, func(p configs.Pool) bool { return p.Name == pool })
	if i < 0 {
		return nil, usageError("tune: %s has no pool %q", f.file, pool)
	}
	t := &tuning{tuneFlags: f, c: c, pool: &cfg.Pools[i]}
	if f.canary && t.pool.Canary == nil {
		return nil, usageError("tune: --canary: pool %q has no canary block, which says how the first worker is judged", pool)
	}
	if f.measure && f.engine == "" && (t.pool.Driver != "process" || len(t.pool.Container.Command) > 0) {
		return nil, usageError("tune: --measure: pool %q runs no engine of ours; --engine \"COMMAND --port {port} {args}\" starts one of its own here", pool)
	}
	if t.goal, err = f.simulateFlags.goal(); err != nil {
		return nil, err
	}
	if t.speed, err = f.constants(); err != nil {
		return nil, err
	}
	all, err := f.scenario(sim.SameSpeed(1, t.speed))
	if err != nil {
		return nil, err
	}
	n := max(1, len(t.pool.Workers))
	for i := 0; i < len(all.Jobs); i += n { // each of the pool's workers gets every n-th
		t.jobs = append(t.jobs, all.Jobs[i])
	}
	return t, nil
}

// present are the settings that the file has, or else vLLM's defaults and ours.
func (t *tuning) present() tune.Settings {
	s := tune.Settings{Seqs: 256, Tokens: 2048}
	for name, into := range map[string]*int{"max-num-seqs": &s.Seqs, "max-num-batched-tokens": &s.Tokens} {
		if n, err := strconv.Atoi(argument(t.pool.Engine.Args, name)); err == nil && n > 0 {
			*into = n
		}
	}
	return s
}

// argument is the value of a flag in an engine's arguments; "" if it is not there.
func argument(args []string, name string) (value string) {
	for i, a := range args {
		flag, joined, found := strings.Cut(a, "=")
		if strings.ReplaceAll(strings.TrimPrefix(flag, "--"), "_", "-") != name {
			continue
		}
		if value = joined; !found && i+1 < len(args) {
			value = args[i+1]
		}
	}
	return value
}

// median is the length of the traffic's median request.
func (t *tuning) median() int {
	var lengths []float64
	for _, j := range t.jobs {
		lengths = append(lengths, float64(j.Prompt+j.Output))
	}
	return int(stat.Percentile(stat.Sorted(lengths), 50))
}

// play has a simulated worker of some settings serve the first part of the traffic.
func (t *tuning) play(s tune.Settings, share float64) tune.Score {
	speed := t.speed
	speed.Seats, speed.Budget = s.Seqs, s.Tokens
	n := max(min(len(t.jobs), 8), int(float64(len(t.jobs))*share))
	o := sim.Run(&sim.Scenario{Workers: []sim.Speed{speed}, Stale: 0.25, Jobs: t.jobs[:n], Goal: inSeconds(t.goal)}, sim.Policies()[0](), t.seed)
	return tune.Score{Goodput: o.Good * float64(n) / o.Seconds, Throughput: float64(o.Tokens) / o.Seconds}
}

// simulatedReason says what the simulation alone lets one say.
func (t *tuning) simulatedReason(out *tuned) string {
	if best := out.Simulated[0].Settings; best != out.Present {
		return fmt.Sprintf("%s is the best in simulation, which proposes nothing by itself: --measure compares it with the present settings", best)
	}
	return "the present settings are the best in simulation: leave them"
}

// measureBest measures the best of the simulation in turns with the present settings.
func (t *tuning) measureBest(ctx context.Context, out *tuned) error {
	list := []tune.Settings{out.Present}
	for _, p := range out.Simulated {
		if p.Settings != out.Present {
			list = append(list, p.Settings)
		}
	}
	if len(list) == 1 {
		out.Reason = "the present settings are the best in simulation: there is nothing to measure them with; leave them"
		return nil
	}
	scores, err := tune.Turns(list, t.runs, func(round int, s tune.Settings) (tune.Score, error) { return t.run(ctx, round, s) })
	if err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	all, best := tune.Judge(list, scores)
	out.Measured = all
	if best < 0 {
		out.Reason = fmt.Sprintf("no difference shown: none of %s is better by %g %% at the lower bound of the 95 %% interval; leave the present settings", count(len(list)-1, "candidate"), 100*tune.Least)
		return nil
	}
	j := all[best]
	out.Proposed = &j.Settings
	out.Reason = fmt.Sprintf("measured in %d turns with the present %s: goodput at %s %s, tokens/s %s", t.runs, out.Present, t.slo, j.Goodput, j.Throughput)
	return nil
}

// change makes the diff, and has the canary begin if that was asked for.
func (t *tuning) change(ctx context.Context, out *tuned) error {
	src, err := os.ReadFile(t.file)
	if err != nil {
		return err
	}
	var flags []configs.Flag
	if p := *out.Proposed; p.Seqs != out.Present.Seqs {
		flags = append(flags, configs.Flag{Name: "max-num-seqs", Value: strconv.Itoa(p.Seqs)})
	}
	if p := *out.Proposed; p.Tokens != out.Present.Tokens {
		flags = append(flags, configs.Flag{Name: "max-num-batched-tokens", Value: strconv.Itoa(p.Tokens)})
	}
	text, err := configs.SetArgs(t.file, src, out.Pool, flags)
	if err != nil {
		return fmt.Errorf("tune: the settings are %s: %w", out.Proposed, err)
	}
	out.Diff = lineDiff(t.file, "proposed", src, text)
	if !t.canary {
		return nil
	}
	t.admin.file = t.file
	a, err := t.admin.client(t.c)
	if err != nil {
		return err
	}
	if err := replaceFile(t.file, text); err != nil {
		return err
	}
	if err := a.ask(ctx, http.MethodPost, "/api/reload", nil, nil); err != nil {
		return fmt.Errorf("tune: %s is changed, and not yet in force: %w", t.file, err)
	}
	return nil
}

// print tells everything that led to the verdict, and the verdict last.
func (t *tuning) print(out *tuned) {
	w := t.c.out
	fmt.Fprintf(w, "pool %s, now %s; goal %s\n", out.Pool, out.Present, t.slo)
	for _, r := range out.Refused {
		fmt.Fprintf(w, "left out: %s: %s\n", r.What, r.Why)
	}
	fmt.Fprintln(w, "\nsimulated, the best:")
	for _, p := range out.Simulated {
		fmt.Fprintf(w, "  %-52s goodput %.2f/s, %.0f tokens/s\n", p.Settings, p.Score.Goodput, p.Score.Throughput)
	}
	if len(out.Measured) > 0 {
		fmt.Fprintf(w, "\nmeasured in %d turns:\n", t.runs)
	}
	for i, j := range out.Measured {
		var g, s []float64
		for _, x := range j.Scores {
			g, s = append(g, x.Goodput), append(s, x.Throughput)
		}
		line := fmt.Sprintf("  %-52s goodput %.2f/s, %.0f tokens/s", j.Settings, stat.Mean(g), stat.Mean(s))
		if i > 0 {
			line += fmt.Sprintf(": %s, %s", j.Goodput, j.Throughput)
		}
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "\n%s\n", out.Reason)
	if out.Diff != "" {
		fmt.Fprintf(w, "\n%s", out.Diff)
	}
	switch {
	case out.Proposed != nil && t.canary:
		fmt.Fprintf(w, "\nwritten and reloaded: watch it by roundhouse events --follow\n")
	case out.Proposed != nil:
		fmt.Fprintf(w, "\nnothing is changed: edit %s, then roundhouse reload\n", t.file)
	}
}

// engineReady is how long an engine that is measured may take to be ready.
const engineReady = 15 * time.Minute
