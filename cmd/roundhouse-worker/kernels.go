package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"roundhouse/kernels/measure"
	"roundhouse/worker/launch"
)

// deviceFlags reads the flags that the commands on kernels share.
func deviceFlags(name, device string, stderr io.Writer) (flags *flag.FlagSet, on *string, short *bool) {
	flags = flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	on = flags.String("device", device, "`device`: cpu, xpu, xpu:0000:18:00.0, or xpu:cpu for an OpenCL driver of the CPU")
	short = flags.Bool("short", false, "small matrices and little time: whether it works, not how fast")
	return flags, on, short
}

func measureOptions(short bool) measure.Options {
	if short {
		return measure.Short()
	}
	return measure.Options{}
}

// benchKernels prints what each kernel reads and computes a second, as a share of a bare
// copy on the same device.
func benchKernels(args []string, stdout, stderr io.Writer) int {
	flags, on, short := deviceFlags("bench-kernels", "cpu", stderr)
	asJSON := flags.Bool("json", false, "print JSON, one kernel a line")
	if flags.Parse(args) != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "roundhouse-worker bench-kernels: %q is no flag; the device is --device\n", flags.Arg(0))
		return 2
	}
	if *on != "cpu" && !strings.HasPrefix(*on, "xpu") {
		fmt.Fprintf(stderr, "roundhouse-worker bench-kernels: --device %s: want cpu or xpu\n", *on)
		return 2
	}
	be, err := launch.OpenDevice(*on, os.Getenv)
	if err != nil {
		return told(stderr, err)
	}
	defer be.Close()
	o := measureOptions(*short)
	copied, err := measure.Copy(be, o)
	if err != nil {
		return told(stderr, err)
	}
	if !*asJSON {
		fmt.Fprintf(stdout, "%s; a bare copy moves %.1f GB/s\n\n%-40s %12s %14s %10s %8s %9s %8s\n", be.Name(), copied.Rate()/1e9,
			"kernel", "bytes", "operations", "µs", "GB/s", "Gop/s", "of copy")
	}
	return told(stderr, measure.Kernels(be, o, func(f measure.Figures) {
		share := f.Rate() / copied.Rate()
		if *asJSON {
			_ = json.NewEncoder(stdout).Encode(struct {
				measure.Figures
				Share float64 `json:"of_copy"`
			}{f, share})
			return
		}
		fmt.Fprintf(stdout, "%-40s %12d %14d %10.1f %8.1f %9.1f %7.0f%%\n", f.Name, f.Bytes, f.Flops, f.Seconds*1e6, f.Rate()/1e9, f.Speed()/1e9, 100*share)
	}))
}

// tune finds and keeps the fastest tuning of a GPU.
func tune(args []string, stdout, stderr io.Writer) int {
	flags, on, short := deviceFlags("tune", "xpu", stderr)
	if flags.Parse(args) != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "roundhouse-worker tune: %q is no flag; the device is --device\n", flags.Arg(0))
		return 2
	}
	if !strings.HasPrefix(*on, "xpu") {
		fmt.Fprintf(stderr, "roundhouse-worker tune: --device %s has nothing to tune; name a GPU: --device xpu\n", *on)
		return 2
	}
	return told(stderr, launch.Tune(*on, os.Getenv, measureOptions(*short), stdout))
}
