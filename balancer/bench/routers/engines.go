package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"roundhouse/balancer/sim"
)

// fleet is engines in a process of their own.
type fleet struct {
	urls []string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *json.Decoder
}

// told is what that process is told.
type told struct {
	Speeds []sim.Speed
	Age    time.Duration // of their metrics
}

// newFleet starts a scenario's engines.
func newFleet(s *sim.Scenario) (*fleet, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(told{s.Workers, time.Duration(s.Old * float64(time.Second))})
	if err != nil {
		return nil, err
	}
	f := &fleet{cmd: exec.Command(self, "-engines", string(text))}
	f.cmd.Stderr = os.Stderr
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	f.out = json.NewDecoder(out)
	return f, f.out.Decode(&f.urls)
}

// tell stops an engine or starts it again.
func (f *fleet) tell(verb string, engine int) { fmt.Fprintln(f.in, verb, engine) }

// late is how late the engines' tokens were, in seconds, on average at the latest of them.
func (f *fleet) late() (seconds float64, err error) {
	f.tell("late", 0)
	return seconds, f.out.Decode(&seconds)
}

// serveEngines is the process of a fleet; it ends with its input.
func serveEngines(text string) error {
	var t told
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	var all []*sim.Worker
	var urls []string
	for i := range t.Speeds {
		w := sim.New(sim.Options{Speed: &t.Speeds[i], Age: t.Age, Caches: true, Context: 1 << 16})
		if err := w.Start(); err != nil {
			return err
		}
		all, urls = append(all, w), append(urls, w.URL)
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(urls); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var verb string
		var i int
		if _, err := fmt.Sscan(in.Text(), &verb, &i); err != nil {
			return err
		}
		var err error
		switch verb {
		case "stop":
			all[i].Stop()
		case "start":
			err = all[i].Start()
		case "late":
			late := 0.0
			for _, w := range all {
				late = max(late, w.Lateness().Seconds())
			}
			err = out.Encode(late)
		}
		if err != nil {
			return err
		}
	}
	return in.Err()
}
