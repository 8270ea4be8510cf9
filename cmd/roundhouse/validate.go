package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"roundhouse/configs"
)

// validateCommand checks configuration files as `up` and `reload` would.
func validateCommand(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "validate FILE...",
		Short:   "Check configuration files",
		GroupID: groupConfig,
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, files []string) error {
			reports := make([]validation, 0, len(files))
			for _, file := range files {
				reports = append(reports, c.validate(file))
			}
			return c.printValidations(reports, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was found as JSON")
	return cmd
}

// validation is what was found in one file.
type validation struct {
	File     string              `json:"file"`
	Valid    bool                `json:"valid"`
	Errors   configs.Diagnostics `json:"errors"`
	Warnings configs.Diagnostics `json:"warnings"`

	pools, workers int
}

func (c *console) validate(file string) validation {
	v := validation{File: file, Errors: configs.Diagnostics{}, Warnings: configs.Diagnostics{}}
	cfg, err := configs.Load(file, c.env)
	var diags configs.Diagnostics
	switch {
	case errors.As(err, &diags):
		v.Errors = diags
	case err != nil:
		v.Errors = configs.Diagnostics{{File: file, Message: err.Error()}}
	default:
		v.Valid = true
		v.Warnings = append(v.Warnings, cfg.Warnings...)
		v.pools = len(cfg.Pools)
		for _, p := range cfg.Pools {
			v.workers += len(p.Workers)
		}
	}
	return v
}

func (c *console) printValidations(reports []validation, asJSON bool) error {
	var failed error
	for _, v := range reports {
		if !v.Valid {
			failed = &codedError{exitUsage, errSaid}
		}
		if asJSON {
			continue
		}
		for _, d := range v.Errors {
			fmt.Fprintln(c.err, d)
		}
		for _, d := range v.Warnings {
			d.Message = "warning: " + d.Message
			fmt.Fprintln(c.err, d)
		}
		if v.Valid {
			fmt.Fprintf(c.out, "%s: valid; %s, %s\n", v.File, count(v.pools, "pool"), count(v.workers, "worker"))
		}
	}
	if asJSON {
		if err := c.printJSON(map[string]any{"schema": 1, "files": reports}); err != nil {
			return err
		}
	}
	return failed
}

// count writes a number with its noun: "1 worker", "2 workers".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
