package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/sim"
)

// What is killed: of three engines one every so often, which is back a second
// later, under so many streams of a second each.
const (
	killEvery   = 3500 * time.Millisecond
	deadFor     = time.Second
	killStreams = 24
	killWords   = 50
	killPace    = 20 * time.Millisecond
)

// serveEngine is an engine whose answers are numbered words, so that a client
// sees every word that is missing or said twice.
func serveEngine(addr string, own bool) error {
	w := sim.New(sim.Options{Own: own, Words: killWords, Pace: killPace})
	w.URL = "http://" + addr
	if err := w.Start(); err != nil {
		return err
	}
	select {}
}

// killed is one relay in front of three engines of its own.
type killed struct {
	name    string
	own     bool
	addr    string
	engines [3]string
	procs   [3]*exec.Cmd

	streams, cut, refused atomic.Int64
	kills                 int
}

// killing runs streams through each relay while its engines are killed, one
// after the other, and counts the streams that did not come whole.
func (b *bench) killing() ([]figure, error) {
	all := []*killed{{name: "door"}, {name: "door, our workers", own: true}}
	for _, name := range []string{"nginx", "haproxy"} {
		if _, err := exec.LookPath(name); err == nil {
			all = append(all, &killed{name: name})
		}
	}
	for _, k := range all {
		if err := k.begin(b); err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	failed := make(chan error, len(all))
	for _, k := range all {
		wg.Go(func() { failed <- k.killOneByOne(b, stop) })
		for range killStreams {
			wg.Go(func() { k.load(stop) })
		}
	}
	time.Sleep(b.o.span(15*time.Second, 2*time.Minute))
	close(stop)
	wg.Wait()
	rows := make([]figure, 4)
	rows[0] = figure{name: "engines killed under 24 streams: streams", unit: "", rounds: []map[string]float64{{}}}
	rows[1] = figure{name: "  cut", unit: "%", goals: []goal{atMost("", 0)}, rounds: []map[string]float64{{}}}
	rows[2] = figure{name: "  refused", unit: "%", goals: []goal{atMost("", 0)}, rounds: []map[string]float64{{}}}
	rows[3] = figure{name: "  engines killed", unit: "", rounds: []map[string]float64{{}}}
	for _, k := range all {
		if err := <-failed; err != nil {
			return nil, err
		}
		n := float64(k.streams.Load())
		for i, v := range []float64{n, 100 * float64(k.cut.Load()) / n, 100 * float64(k.refused.Load()) / n, float64(k.kills)} {
			rows[i].rounds[0][k.name] = v
		}
	}
	b.proxies = nil
	for _, k := range all {
		b.proxies = append(b.proxies, &proxy{name: k.name})
	}
	return rows, nil
}

// begin starts the engines and the relay in front of them.
func (k *killed) begin(b *bench) (err error) {
	for i := range k.engines {
		k.engines[i] = freeAddr()
		if err := k.start(b, i); err != nil {
			return err
		}
	}
	for _, e := range k.engines {
		if err := awaitPort(e); err != nil {
			return err
		}
	}
	k.addr = freeAddr()
	path := filepath.Join(b.dir, "killed-"+strings.ReplaceAll(k.name, ", ", "-"))
	conf, cmd := "", (*exec.Cmd)(nil)
	switch k.name {
	case "nginx":
		conf, err = k.configured(b, "nginx.conf", "server UPSTREAM1; server UPSTREAM2;",
			// A stream that breaks would else take its engine out for ten seconds, and soon all three.
			"server UPSTREAM1 max_fails=0; server UPSTREAM2 max_fails=0; server UPSTREAM3 max_fails=0;")
		cmd = exec.Command("nginx", "-p", b.dir, "-c", path)
	case "haproxy":
		const line = "  server e2 UPSTREAM2 maxconn STREAMS pool-max-conn 1024"
		conf, err = k.configured(b, "haproxy.cfg", line, line+"\n  server e3 UPSTREAM3 maxconn STREAMS pool-max-conn 1024\n  default-server check inter 500ms fall 1 rise 1\n  option redispatch 1\n  retries 3")
		cmd = exec.Command("haproxy", "-q", "-f", path)
	default:
		var c strings.Builder
		fmt.Fprintf(&c, "admin {\n  listen = %q\n}\ndoor {\n  listen = %q\n}\nlog {\n  access = false\n  level = \"error\"\n}\npool \"p\" {\n  driver = \"static\"\n", freeAddr(), k.addr)
		for i, e := range k.engines {
			fmt.Fprintf(&c, "  worker \"w%d\" {\n    url = \"http://%s\"\n  }\n", i, e)
		}
		conf = c.String() + "}\n"
		cmd = exec.Command(b.o.door, "balance", "-c", path)
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		return err
	}
	if _, err := b.start(cmd); err != nil {
		return err
	}
	return awaitPort(k.addr)
}

// configured is a committed configuration, made for three engines.
func (k *killed) configured(b *bench, file, two, three string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(b.o.configs, file))
	if err != nil {
		return "", err
	}
	conf := string(raw)
	if !strings.Contains(conf, two) {
		return "", fmt.Errorf("%s names its upstreams otherwise than %q", file, two)
	}
	conf = strings.Replace(conf, two, three, 1)
	return strings.NewReplacer("STREAMS", "9900", "LISTEN", k.addr, "UPSTREAM1", k.engines[0], "UPSTREAM2", k.engines[1], "UPSTREAM3", k.engines[2],
		"PID", filepath.Join(b.dir, "killed.pid"), "TMP", b.dir).Replace(conf), nil
}

func (k *killed) start(b *bench, i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"-engine", k.engines[i]}
	if k.own {
		args = append(args, "-own")
	}
	k.procs[i], err = b.start(exec.Command(self, args...))
	return err
}

// killOneByOne kills an engine every while, and starts it again.
func (k *killed) killOneByOne(b *bench, stop chan struct{}) error {
	wait := func(d time.Duration) bool {
		select {
		case <-stop:
			return false
		case <-time.After(d):
			return true
		}
	}
	for wait(killEvery - deadFor) {
		i := k.kills % len(k.engines)
		k.procs[i].Process.Kill()
		k.procs[i].Wait()
		k.kills++
		on := wait(deadFor)
		b.mu.Lock()
		err := k.start(b, i)
		b.mu.Unlock()
		if err != nil || !on {
			return err
		}
	}
	return nil
}

// load reads streams, one after the other.
func (k *killed) load(stop chan struct{}) {
	var want strings.Builder
	for i := range killWords {
		fmt.Fprintf(&want, "%d ", i)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext}}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-stop:
			return
		default:
		}
		k.streams.Add(1)
		switch said, began := k.one(client); {
		case !began:
			k.refused.Add(1)
			time.Sleep(100 * time.Millisecond)
		case said != want.String()+"[DONE]":
			k.cut.Add(1)
		}
	}
}

// one reads a stream and returns its words, and its end mark.
func (k *killed) one(client *http.Client) (said string, began bool) {
	resp, err := client.Post("http://"+k.addr+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"sim","stream":true,"max_tokens":50,"messages":[{"role":"user","content":"count"}]}`))
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		return "", false
	}
	var all strings.Builder
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), `"content":"`); ok {
			text, _, _ := strings.Cut(rest, `"`)
			all.WriteString(text)
		} else if lines.Text() == "data: [DONE]" {
			all.WriteString("[DONE]")
		}
	}
	if lines.Err() != nil {
		return all.String() + "\n" + lines.Err().Error(), true
	}
	return all.String(), true
}
