package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"roundhouse/configs/importer"
)

// importCommand turns what somebody runs today into a configuration.
func importCommand(c *console) *cobra.Command {
	var out, image string
	cmd := &cobra.Command{
		Use:   "import FILE | import -- vllm serve …",
		Short: "Make a configuration of a compose file, an haproxy.cfg, an nginx configuration, or a vllm command line",
		Long: `Make a configuration of what runs today: a compose file with vLLM containers, an
haproxy.cfg or nginx configuration with their upstream servers, or a
` + "`vllm serve … --dp N`" + ` command line. What changed, and what was not carried over,
stands in comments at its top. Nothing that runs is touched.`,
		GroupID: groupConfig,
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := c.importFrom(args, cmd.ArgsLenAtDash() == 0, image)
			if err != nil {
				return &codedError{exitUsage, err}
			}
			if out == "" {
				_, err = c.out.Write(result.HCL)
				return err
			}
			if err := writeNew(out, result.HCL); err != nil {
				return err
			}
			fmt.Fprintf(c.out, "%s: %s; read them at its top\n", out, count(len(result.Notes), "note"))
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to this file, which must not exist yet")
	cmd.Flags().StringVar(&image, "image", "", "for a vllm command line: keep vLLM, in containers of this image")
	return cmd
}

// importFrom reads a file or, after "--", a command line.
func (c *console) importFrom(args []string, command bool, image string) (*importer.Result, error) {
	o := importer.Options{Env: c.env, Image: image}
	if command || len(args) > 1 {
		return importer.Command(args, o)
	}
	file := args[0]
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	o.Read = func(path string) ([]byte, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(file), path)
		}
		return os.ReadFile(path)
	}
	return importer.Import(file, src, o)
}

// writeNew writes a file that is not there yet. It may hold what clients may
// not read, such as a worker's environment.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return unwritten(path, err)
	}
	if _, err = f.Write(text); err == nil {
		err = f.Close()
	}
	return err
}

// unwritten says why a file that must be new could not be made.
func unwritten(path string, err error) error {
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already, and nothing is written over: take it away, or give another name", path)
	}
	return fmt.Errorf("cannot write: %w", err)
}
