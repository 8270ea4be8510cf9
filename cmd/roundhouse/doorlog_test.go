package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/configs"
)

// TestDoorLogFollows gives a door that reads no file a worker set: from then on its log
// is as the set wants it, in form and level, for loggers with attributes too.
func TestDoorLogFollows(t *testing.T) {
	var out bytes.Buffer
	how := newDoorLog(&out, configs.Log{})
	log := slog.New(how).With("door", "d")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	d, err := balancer.New(balancer.Options{Listener: ln, Log: slog.New(slog.DiscardHandler), Logs: how.follow})
	if err != nil {
		t.Fatal(err)
	}
	line := func() string {
		out.Reset()
		log.WithGroup("g").Info("hello", "a", 1)
		return out.String()
	}
	if got := line(); !strings.HasSuffix(got, "level=INFO msg=hello door=d g.a=1\n") {
		t.Errorf("at first: %q", got)
	}
	for version, cfg := range []configs.Log{{Format: "json"}, {Format: "text"}, {Format: "json", Level: slog.LevelWarn}} {
		if _, err := d.Apply(control.WorkerSet{Schema: 1, Epoch: 1, Version: uint64(version + 1), Log: cfg}); err != nil {
			t.Fatal(err)
		}
		got := line()
		if asJSON := json.Valid([]byte(got)); asJSON != (version == 0) || (got == "") != (version == 2) {
			t.Errorf("with %+v: %q", cfg, got)
		}
	}
}
