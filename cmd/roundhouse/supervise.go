package main

import (
	"os"

	"github.com/spf13/cobra"

	"roundhouse/supervisor/process"
)

// superviseCommand runs the supervisor apart from the door.
func superviseCommand(c *console) *cobra.Command {
	var f upFlags
	var doors []string
	cmd := &cobra.Command{
		Use:   "supervise",
		Short: "Run the supervisor alone, for doors that run elsewhere",
		Long: `Run the supervisor alone, for doors that run elsewhere (roundhouse balance).

It reaches each door by its private socket, which --door names.`,
		GroupID: groupRun,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(doors) == 0 {
				return usageError("--door SOCKET is missing: which door? `roundhouse up` runs one of its own")
			}
			return c.supervise(cmd.Context(), f, doors)
		},
	}
	f.flags(cmd)
	cmd.Flags().StringArrayVar(&doors, "door", nil, "a door's private socket; once for each door")
	cmd.AddCommand(shimCommand())
	return cmd
}

// shimCommand is the first half of every child; nobody types it.
func shimCommand() *cobra.Command {
	return &cobra.Command{
		Use: "shim", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return process.Shim(args, os.Environ()) },
	}
}
