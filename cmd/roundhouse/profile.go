package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// profileCommand has a worker profiled while it serves.
func profileCommand(c *console) *cobra.Command {
	var f adminFlags
	var seconds float64
	var out string
	cmd := &cobra.Command{
		Use:   "profile POOL/NAME|NAME",
		Short: "Profile a worker while it serves: processor, heap, waiting, time by operation",
		Long: `Profile a worker for some seconds while it serves. Of our own engine the files go
into a folder, and the time by operation is printed:

  summary.txt     each step's time, by operation and thread
  trace.json.gz   every step and operation; Perfetto opens it (Open trace file)
  cpu.pprof       the processor's time; block.pprof, mutex.pprof: waiting;
                  heap.pprof: memory (go tool pprof -http=: FILE)

A vLLM writes torch's profile into its own folder. The engine must have been started
for it, as vLLM's: engine.args with "--profiler-config",
"{\"profiler\": \"torch\", \"torch_profiler_dir\": \"/tmp/profiles\"}".`,
		GroupID: groupLook,
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(seconds > 0 && seconds <= 60) {
				return usageError("profile: --seconds %g: want more than 0, at most 60", seconds)
			}
			a, err := f.client(c)
			if err != nil {
				return err
			}
			to, workers, err := a.resolve(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(workers) != 1 {
				return usageError("profile: %s has %s; name one, as %s", to, count(len(workers), "worker"), workers[0].ID)
			}
			if out == "" {
				out = "profile-" + strings.ReplaceAll(workers[0].ID, "/", "-") + "-" + time.Now().UTC().Format("20060102-150405")
			}
			return takeProfile(cmd.Context(), c, a, workers[0], seconds, out, f.json)
		},
	}
	f.add(cmd)
	cmd.Flags().Float64Var(&seconds, "seconds", 10, "how long, at most 60")
	cmd.Flags().StringVarP(&out, "out", "o", "", "the folder for the files (default: profile-POOL-NAME-TIME)")
	return cmd
}

// takeProfile takes a profile and unpacks it.
func takeProfile(ctx context.Context, c *console, a *client, w workerAnswer, seconds float64, out string, asJSON bool) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute) // a vLLM may write for ten
	defer cancel()
	res, err := a.send(ctx, http.MethodPost, "/api/workers"+escaped(w.Pool, w.Name, "profile"), map[string]any{"seconds": seconds})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	headers := res.Header
	text, err := io.ReadAll(io.LimitReader(res.Body, 256<<20))
	if err != nil {
		return fmt.Errorf("the profile broke off: %w", err)
	}
	answer := map[string]any{"schema": 1, "worker": w.ID, "tokens_per_second_before": headers.Get("X-Roundhouse-Tokens-Before"), "tokens_per_second_during": headers.Get("X-Roundhouse-Tokens-During")}
	var summary string
	if strings.HasPrefix(headers.Get("Content-Type"), "application/zip") {
		if answer["files"], summary, err = unpack(text, out); err != nil {
			return err
		}
	} else {
		var elsewhere struct{ Said string }
		if err := json.Unmarshal(text, &elsewhere); err != nil {
			return fmt.Errorf("%s answers with neither a profile nor JSON: %w", a.where, err)
		}
		summary, answer["said"] = w.ID+": "+elsewhere.Said+"\n", elsewhere.Said
	}
	if asJSON {
		return c.printJSON(answer)
	}
	for line := range strings.Lines(summary) {
		fmt.Fprintln(c.out, printable(strings.TrimRight(line, "\n")))
	}
	fmt.Fprintf(c.out, "\ntokens/s before %s, while profiled %s\n", printable(headers.Get("X-Roundhouse-Tokens-Before")), printable(headers.Get("X-Roundhouse-Tokens-During")))
	if answer["files"] != nil {
		fmt.Fprintf(c.out, "%s: open trace.json.gz in Perfetto, *.pprof with go tool pprof\n", out)
	}
	return nil
}

// unpack writes the files of an archive into a folder, and returns their paths and the
// summary among them.
func unpack(archive []byte, dir string) (paths []string, summary string, err error) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, "", fmt.Errorf("the profile: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, "", unwritten(dir, err)
	}
	for _, f := range z.File {
		if f.Name != filepath.Base(f.Name) || f.Name == ".." {
			return nil, "", fmt.Errorf("the profile has a file %q, which is no plain name", f.Name)
		}
		in, err := f.Open()
		if err != nil {
			return nil, "", fmt.Errorf("the profile: %w", err)
		}
		text, err := io.ReadAll(io.LimitReader(in, 1<<30))
		if err = errors.Join(err, in.Close()); err != nil {
			return nil, "", fmt.Errorf("the profile: %s: %w", f.Name, err)
		}
		path := filepath.Join(dir, f.Name)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return nil, "", unwritten(path, err)
		}
		paths = append(paths, path)
		if f.Name == "summary.txt" {
			summary = string(text)
		}
	}
	return paths, summary, nil
}
