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
	return f, json.NewDecoder(out).Decode(&f.urls)
}

// tell stops an engine or starts it again.
func (f *fleet) tell(verb string, engine int) { fmt.Fprintln(f.in, verb, engine) }

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
	if err := json.NewEncoder(os.Stdout).Encode(urls); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var verb string
		var i int
		if _, err := fmt.Sscan(in.Text(), &verb, &i); err != nil {
			return err
		}
		if verb == "stop" {
			all[i].Stop()
		} else if err := all[i].Start(); err != nil {
			return err
		}
	}
	return in.Err()
}
