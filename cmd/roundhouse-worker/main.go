// Command roundhouse-worker is one engine: a model, its KV cache, and the HTTP
// API of vLLM in front of them.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"roundhouse/worker/api"
	"roundhouse/worker/launch"
)

const help = `roundhouse-worker serves one model over vLLM's HTTP API.

  roundhouse-worker serve [MODEL] [flags]   vLLM's flags; without a model, the built-in demonstration model
  roundhouse-worker plan --memory 24GiB [--model DIR]   whether a model fits, and how much it can serve, in each format
  roundhouse-worker models                  the architectures that it serves
  roundhouse-worker bench-kernels [--device xpu:ADDRESS] [--short] [--json]   what each kernel reads and computes a second
  roundhouse-worker tune [--device xpu:ADDRESS] [--short]   find what a GPU's kernels are fastest with, for the next start
  roundhouse-worker evaluate [--device cpu|xpu] [--short] [--json]   measure the machine: memory, links, products; what is suspicious
  roundhouse-worker health [URL]            whether a worker answers; for health checks of containers
  roundhouse-worker version                 what this build is

Of its own: --device cpu, --cpus LIST, --mems LIST, --weights-cache DIR|off, --head-dtype bfloat16, --legacy-metrics, and --pace DURATION (for tests: the least time of a step).
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with its streams; it returns the exit code: 0 done, 1 failed,
// 2 usage.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, help)
		return 2
	}
	switch args[0] {
	case "serve":
		if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
			return told(stderr, launch.Help(stdout))
		}
		return serve(args[1:], stderr)
	case "plan":
		return plan(args[1:], stdout, stderr)
	case "models":
		return models(args[1:], stdout, stderr)
	case "bench-kernels":
		return benchKernels(args[1:], stdout, stderr)
	case "tune":
		return tune(args[1:], stdout, stderr)
	case "evaluate":
		return evaluation(args[1:], stdout, stderr)
	case "health":
		return health(args[1:], stderr)
	case "version", "--version":
		fmt.Fprintln(stdout, "roundhouse-worker", api.Version)
		return 0
	case "help", "--help", "-h":
		fmt.Fprint(stdout, help)
		return 0
	}
	fmt.Fprintf(stderr, "roundhouse-worker: there is no command %q\n\n%s", args[0], help)
	return 2
}

func serve(args []string, stderr io.Writer) int {
	o, err := launch.ParseServe(args, os.Getenv)
	if err != nil {
		fmt.Fprintln(stderr, "roundhouse-worker:", err)
		return 2
	}
	if f, ok := stderr.(*os.File); ok && launch.IsTerminal(f) {
		o.Terminal = f
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: o.LogLevel}))
	if err := launch.Bind(&o, "/sys", os.Args, os.Environ(), log); err != nil {
		return told(stderr, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return told(stderr, launch.Serve(ctx, o, log))
}

// told reports err, if there is one, and returns the exit code.
func told(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "roundhouse-worker:", err)
	return 1
}
