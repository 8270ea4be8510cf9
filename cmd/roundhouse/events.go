package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

// eventsCommand shows what has happened.
func eventsCommand(c *console) *cobra.Command {
	var f adminFlags
	var follow bool
	var limit int
	var after uint64
	cmd := &cobra.Command{
		Use:     "events",
		Short:   "Show what has happened",
		Long:    "Show what has happened: starts, drains, turns, failures, commands and who gave\nthem. They are kept for 30 days, up to 100000. With --json, one object a line.",
		GroupID: groupLook,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usageError("--limit is 1 or more")
			}
			a, err := f.client(c)
			if err != nil {
				return err
			}
			stream, err := a.open(cmd.Context(), http.MethodGet, fmt.Sprintf("/api/events?follow=%t&limit=%d&after=%d", follow, limit, after), nil)
			if err != nil {
				return err
			}
			defer stream.Close()
			return c.printEvents(stream, f.json, follow)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens from now on")
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "how many of the latest")
	cmd.Flags().Uint64Var(&after, "after", 0, "only those after the event of this number")
	return cmd
}

// printEvents prints a stream of server-sent events as it comes.
func (c *console) printEvents(stream io.Reader, asJSON, follow bool) error {
	in := bufio.NewReader(stream)
	for {
		line, err := in.ReadString('\n')
		if data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:"); ok {
			data = strings.TrimSpace(data)
			if asJSON {
				fmt.Fprintln(c.out, data)
			} else {
				var e eventAnswer
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					return fmt.Errorf("an event that is not JSON: %w", err)
				}
				fmt.Fprintln(c.out, printable(e.line()))
			}
		}
		switch {
		case errors.Is(err, io.EOF) && follow:
			return &codedError{exitUnreachable, errors.New("the stream of events has ended: the supervisor stopped or restarts")}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the stream of events broke off: %w", err)
		}
	}
}

// line is an event as people read it.
func (e eventAnswer) line() string {
	about := e.Worker
	if about == "" {
		about = e.Pool
	}
	if about == "" {
		about = "-"
	}
	text := fmt.Sprintf("%s  %-6d %-16s %-12s %s", e.At.UTC().Format(stamp), e.ID, about, e.Kind, e.Text)
	if e.Who != "" && e.Who != "supervisor" {
		text += " (" + e.Who + ")"
	}
	return text
}
