package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// healthCommand is what a container's health check runs, where there is no
// other program to ask with.
func healthCommand() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:    "health URL",
		Short:  "Say whether URL answers with 200",
		Hidden: true,
		Args:   usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
			if err != nil {
				return usageError("%w", err)
			}
			client := &http.Client{}
			if socket != "" {
				client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "unix", socket)
				}}
			}
			res, err := client.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return fmt.Errorf("%s answers %s", args[0], res.Status)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&socket, "unix", "", "ask over this unix socket")
	return cmd
}
