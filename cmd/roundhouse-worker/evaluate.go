package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"roundhouse/configs/statefile"
	"roundhouse/kernels"
	"roundhouse/kernels/measure"
	"roundhouse/worker/api"
	"roundhouse/worker/device"
	"roundhouse/worker/evaluate"
	"roundhouse/worker/launch"
)

// evaluation measures the machine: processors, memory, cards and the ways between them.
func evaluation(args []string, stdout, stderr io.Writer) int {
	flags, on, short := deviceFlags("evaluate", "all", stderr)
	asJSON := flags.Bool("json", false, "print the report as JSON")
	if flags.Parse(args) != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "roundhouse-worker evaluate: %q is no flag; the device is --device\n", flags.Arg(0))
		return 2
	}
	if *on != "all" && *on != "cpu" && !strings.HasPrefix(*on, "xpu") {
		fmt.Fprintf(stderr, "roundhouse-worker evaluate: --device %s: want all, cpu or xpu\n", *on)
		return 2
	}
	o := evaluate.Options{Short: *short, Allowed: launch.Affinity(), Version: api.Version,
		Open:     func(name string) (kernels.Backend, error) { return launch.OpenDevice(name, os.Getenv) },
		Progress: func(format string, args ...any) { fmt.Fprintf(stderr, format+" …\n", args...) }}
	if *on == "all" || *on == "cpu" {
		o.Devices = []string{"cpu"}
	}
	if *on != "cpu" {
		name := strings.Replace(*on, "all", "xpu", 1)
		cards, ways, err := launch.Cards(name, os.Getenv, transferOptions(*short))
		if err != nil || len(cards) == 0 && *on != "all" {
			return told(stderr, fmt.Errorf("--device %s: %w", *on, orNone(err)))
		}
		o.Devices, o.Transfers = append(o.Devices, cards...), ways
	}
	r := evaluate.Run(o)
	if err := r.Err(); err != nil {
		return told(stderr, err)
	}
	if path, err := keep(r); err != nil {
		fmt.Fprintf(stderr, "the report is not kept for roundhouse doctor --bundle: %v\n", err)
	} else {
		fmt.Fprintf(stderr, "kept in %s, for roundhouse doctor --bundle\n\n", path)
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return told(stderr, e.Encode(r))
	}
	return told(stderr, r.Write(stdout))
}

func orNone(err error) error {
	if err == nil {
		err = fmt.Errorf("OpenCL offers no such device; install the driver of your GPU, on Debian intel-opencl-icd")
	}
	return err
}

func transferOptions(short bool) measure.TransferOptions {
	if short {
		return measure.TransferOptions{Sizes: []int64{64 << 10, 1 << 20}, Time: 10 * time.Millisecond}
	}
	return measure.TransferOptions{}
}

// keep writes the report where the doctor looks for it.
func keep(r *evaluate.Report) (path string, err error) {
	if path = device.Evaluation(); path == "" {
		return "", fmt.Errorf("there is no folder for it; set XDG_CACHE_HOME or HOME")
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, statefile.Write(path, text)
}
