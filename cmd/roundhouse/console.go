package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"roundhouse/configs"
)

// The exit codes, as docs/operations.md has them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2 // usage or configuration
	exitUnreachable = 3 // nothing to reach
)

// console is what a command has of the world: its streams and environment.
type console struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)

	ran bool // a command has begun, so that what fails is not its usage
}

// codedError is an error that ends the program with a code of its own.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// usageError reports what the command line has wrong.
func usageError(format string, args ...any) error {
	return &codedError{exitUsage, fmt.Errorf(format, args...)}
}

// errSaid ends the program with a code after the command has said why.
var errSaid = errors.New("")

// run executes the program and returns its exit code. Errors are printed
// here and nowhere else.
func (c *console) run(root *cobra.Command, args []string) int {
	root.SetArgs(oneDash(args))
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError("%w", err) })
	c.watch(root)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitDone
	}
	var (
		diags configs.Diagnostics
		coded *codedError
	)
	switch {
	case errors.As(err, &diags):
		fmt.Fprintln(c.err, err)
		return exitUsage
	case errors.As(err, &coded):
		if coded.err != errSaid {
			fmt.Fprintf(c.err, "roundhouse: %v\n", err)
		}
		if coded.code == exitUsage && coded.err != errSaid && cmd.HasParent() {
			fmt.Fprintf(c.err, "see: %s --help\n", cmd.CommandPath())
		}
		return coded.code
	}
	fmt.Fprintf(c.err, "roundhouse: %v\n", err)
	if !c.ran {
		return exitUsage
	}
	return exitFailed
}

// watch notes when a command begins. What cobra refuses before, such as a
// missing flag, has no error type of its own.
func (c *console) watch(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.ran = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		c.watch(sub)
	}
}

// usage makes cobra's check of the arguments end with the code for usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError("%s: %w", cmd.Name(), err)
		}
		return nil
	}
}

// printJSON writes v as the one object that --json prints.
func (c *console) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printLine writes v as one line of JSON.
func printLine(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// load reads a configuration; whatever is wrong with it is of code 2.
func (c *console) load(path string) (*configs.Config, error) {
	cfg, err := configs.Load(path, c.env)
	if err != nil {
		return nil, &codedError{exitUsage, err}
	}
	// A plugin's path is relative to the file that names it: the door, which runs it,
	// stands elsewhere.
	for i := range cfg.Plugins {
		if p := &cfg.Plugins[i]; !filepath.IsAbs(p.Path) {
			p.Path = filepath.Join(filepath.Dir(path), p.Path)
		}
	}
	return cfg, nil
}
