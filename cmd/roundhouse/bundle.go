package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"roundhouse/worker/api"
	"roundhouse/worker/device"
)

// maxBundled bounds each part of a bundle.
const maxBundled = 8 << 20

// bundledApart is the time between the two looks at the metrics.
const bundledApart = 10 * time.Second

// bundle writes what a bug report needs into one file. What cannot be had is
// a part that says why.
func (d *doctor) bundle(ctx context.Context, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return unwritten(path, err)
	}
	zipped := gzip.NewWriter(file)
	t := tar.NewWriter(zipped)
	add := func(name string, text []byte) {
		if err != nil {
			return
		}
		header := &tar.Header{Name: "roundhouse/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: time.Now()}
		if err = t.WriteHeader(header); err == nil {
			_, err = t.Write(text)
		}
	}
	add("doctor.json", indented(d.findings))
	add("machine.json", indented(map[string]any{"version": api.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU()}))
	add("evaluation.json", evaluated())
	if d.cfg != nil {
		add("config.json", indented(d.cfg.Redacted()))
	}
	for _, name := range []string{"workers", "pools", "rotations", "schedule", "version", "requests", "queue"} {
		add("api/"+name+".json", d.fetch(ctx, "/api/"+name))
	}
	add("events.txt", d.fetch(ctx, "/api/events?follow=false&limit=2000"))
	add("api/diagnosis.json", d.fetch(ctx, "/api/diagnosis"))
	metrics := d.fetch(ctx, "/metrics")
	add("metrics.txt", metrics)
	began := time.Now()
	if all, e := d.workers(ctx); e == nil {
		for _, w := range all.Workers {
			add("logs/"+strings.ReplaceAll(w.ID, "/", "-")+".log", d.fetch(ctx, "/api/workers"+escaped(w.Pool, w.Name)+"/logs?tail=500"))
		}
	}
	if bytes.HasPrefix(metrics, []byte("#")) { // a second look at them gives rates to roundhouse diagnose
		select {
		case <-time.After(time.Until(began.Add(bundledApart))):
			add("metrics-later.txt", d.fetch(ctx, "/metrics"))
		case <-ctx.Done():
		}
	}
	for _, end := range []func() error{t.Close, zipped.Close, file.Close} {
		if e := end(); err == nil {
			err = e
		}
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// evaluated is the last evaluation of the machine by this user, or how to have one: it
// takes minutes and every card, so a doctor does not do it by himself.
func evaluated() []byte {
	text, err := os.ReadFile(device.Evaluation())
	if err != nil {
		return []byte("cannot be had: roundhouse-worker evaluate makes it, while no worker uses the cards\n")
	}
	return text[:min(len(text), maxBundled)]
}

// fetch returns an answer of the admin API, or why there is none.
func (d *doctor) fetch(ctx context.Context, path string) []byte {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	stream, err := d.open(ctx, http.MethodGet, path, nil)
	if err != nil {
		return []byte("cannot be had: " + err.Error() + "\n")
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, maxBundled))
	if err != nil {
		text = append(text, "\nbroke off: "+err.Error()+"\n"...)
	}
	return text
}

func indented(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic("BUG: " + err.Error())
	}
	return b.Bytes()
}
