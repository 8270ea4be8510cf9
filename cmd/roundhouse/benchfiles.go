package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"roundhouse/measure/bench"
	"roundhouse/worker/api"
)

// facts say how it was run.
func (b *benchmark) facts() [][2]string {
	f := b.flags
	return [][2]string{
		{"service", b.client.URL}, {"model", b.client.Model}, {"data", f.dataset.describe()},
		{"load", fmt.Sprintf("rate %g/s, burstiness %g, at most %d at once (0: any number)", f.rate, f.burstiness, f.concurrency)},
		{"seed", fmt.Sprint(f.seed)}, {"roundhouse", api.Version},
	}
}

func (d *benchData) describe() string {
	switch {
	case d.trace != "":
		return fmt.Sprintf("%s, %g × its speed", filepath.Base(d.trace), d.speed)
	case d.path != "":
		return d.name + " " + filepath.Base(d.path)
	case d.name == "random":
		return fmt.Sprintf("random words, %d tokens in and %d out", d.lengths.Input, d.lengths.Output)
	}
	return d.name
}

// write writes the result file and the report.
func (b *benchmark) write(all []bench.Measurement, page bench.Page) error {
	f := b.flags
	path := f.resultFile
	if path == "" {
		path = bench.FileName(b.setup)
	}
	path = filepath.Join(f.resultDir, path)
	if f.save || f.appended {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		for i, l := range all {
			if err := bench.Save(path, bench.Result(b.setup, l, f.detailed), f.appended || i > 0); err != nil {
				return err
			}
		}
		fmt.Fprintln(b.out, "result:", path)
	}
	if f.timeline {
		if err := writePage(strings.TrimSuffix(path, ".json")+".timeline.html", page); err != nil {
			return err
		}
	}
	if f.report == "" {
		return nil
	}
	if err := writePage(f.report, page); err != nil {
		return err
	}
	fmt.Fprintln(b.out, "report:", f.report)
	return nil
}

func writePage(path string, page bench.Page) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := bench.WriteReport(file, page); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
