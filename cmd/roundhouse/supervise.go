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

It reaches each door by its private socket, which --door names. With
--end-with-doors, a supervisor that is ended while a door still answers leaves
the workers to its successor; once no door answers, it stops them and removes
their containers. That is what compose files mean by restart and down.`,
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
	cmd.Flags().StringVar(&f.instance, "instance", "", "label containers with this name instead of one made of the state folder")
	cmd.Flags().BoolVar(&f.endWithDoors, "end-with-doors", false, "at the end keep the workers while a door answers, else remove them")
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
