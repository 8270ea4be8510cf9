package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

// reloadCommand has a running roundhouse read its file anew.
func reloadCommand(c *console) *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Take the configuration file anew, whole or not at all",
		Long: `Take the configuration file anew. It applies whole or not at all and drops no
request; what changed is printed.`,
		GroupID: groupOperate,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := f.client(c)
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := a.ask(cmd.Context(), http.MethodPost, "/api/reload", nil, &raw); err != nil {
				var refused *apiError
				if errors.As(err, &refused) && refused.status == http.StatusBadRequest {
					return &codedError{exitUsage, fmt.Errorf("nothing is changed:\n%w", err)}
				}
				return err
			}
			if f.json {
				return c.relayed(raw)
			}
			var answer struct {
				Changes []string `json:"changes"`
			}
			if err := json.Unmarshal(raw, &answer); err != nil {
				return fmt.Errorf("%s: its answer to reload: %w", a.where, err)
			}
			if len(answer.Changes) == 0 {
				fmt.Fprintln(c.out, "reloaded; nothing has changed")
				return nil
			}
			fmt.Fprintln(c.out, "reloaded; changed:")
			for _, change := range answer.Changes {
				fmt.Fprintln(c.out, "  "+printable(change))
			}
			return nil
		},
	}
	f.add(cmd)
	return cmd
}
