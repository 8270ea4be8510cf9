package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"roundhouse/configs"
)

// fmtCommand writes configuration files in their one form.
func fmtCommand(c *console) *cobra.Command {
	var check, diff bool
	cmd := &cobra.Command{
		Use:   "fmt [FILE...]",
		Short: "Format configuration files",
		Long: `Format configuration files in place. Without a file, or with "-", it reads
standard input and writes standard output.`,
		GroupID: groupConfig,
		RunE: func(_ *cobra.Command, files []string) error {
			if len(files) == 0 {
				files = []string{"-"}
			}
			f := formatter{c, check, diff}
			changed := false
			for _, file := range files {
				differs, err := f.file(file)
				if err != nil {
					return err
				}
				changed = changed || differs
			}
			if changed && check {
				return &codedError{exitFailed, errSaid}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing; list what is not formatted and exit 1")
	cmd.Flags().BoolVar(&diff, "diff", false, "change nothing; print what would change")
	return cmd
}

// oneDash accepts -check and -diff, as other tools of this kind have them.
func oneDash(args []string) []string {
	if len(args) == 0 || args[0] != "fmt" {
		return args
	}
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "-check" || arg == "-diff" {
			out[i] = "-" + arg
		}
	}
	return out
}

type formatter struct {
	*console
	check, diff bool
}

// file formats one file and reports whether it was not formatted.
func (f formatter) file(path string) (bool, error) {
	name := path
	var src []byte
	var err error
	if path == "-" {
		name = "standard input"
		src, err = io.ReadAll(io.LimitReader(f.in, configs.MaxFileSize+1))
	} else {
		src, err = os.ReadFile(path)
	}
	if err != nil {
		return false, &codedError{exitUsage, fmt.Errorf("cannot read %s: %w", name, err)}
	}
	out, err := configs.Format(name, src)
	if err != nil {
		return false, err
	}
	differs := !bytes.Equal(src, out)
	switch {
	case f.diff:
		fmt.Fprint(f.out, lineDiff(name, "formatted", src, out))
	case f.check:
		if differs {
			fmt.Fprintln(f.out, name)
		}
	case path == "-":
		_, err = f.out.Write(out)
	case differs:
		fmt.Fprintln(f.out, name)
		err = replaceFile(path, out)
	}
	return differs, err
}

// replaceFile writes a file anew, with its mode, so that a reader sees the
// old text or the new one and never half of it.
func replaceFile(path string, text []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link stays a link
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".roundhouse-fmt-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails after the rename, as it should
	_, err = tmp.Write(text)
	if e := tmp.Chmod(info.Mode().Perm()); err == nil {
		err = e
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
