package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"
)

// scaleCommand changes how many workers a pool has.
func scaleCommand(c *console) *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:   "scale POOL N",
		Short: "Give a pool more or fewer workers",
		Long: `Give a pool more or fewer workers. What goes is drained first. The number holds
until the configuration file is reloaded with another one.`,
		GroupID: groupOperate,
		Args:    usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 {
				return usageError("scale: %q is not a number of workers, 1 or more", args[1])
			}
			a, err := f.client(c)
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := a.ask(cmd.Context(), http.MethodPost, "/api/pools"+escaped(args[0], "scale"), map[string]int{"workers": n}, &raw); err != nil {
				return err
			}
			if f.json {
				return c.relayed(raw)
			}
			fmt.Fprintf(c.out, "%s: %s\n", args[0], count(n, "worker"))
			return nil
		},
	}
	f.add(cmd)
	return cmd
}
