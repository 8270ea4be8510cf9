package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"roundhouse/worker/api"
)

// versionCommand says what this build is.
func versionCommand(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		GroupID: groupLook,
		Args:    usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return c.printJSON(map[string]any{"schema": 1, "version": api.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			fmt.Fprintf(c.out, "roundhouse %s (%s, %s/%s)\n", api.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return cmd
}
