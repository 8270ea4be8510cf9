package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"roundhouse/balancer/control"
)

// canaryFlags are what `canary` is told to do.
type canaryFlags struct {
	admin                    adminFlags
	promote, rollBack, again bool
}

// canaryCommand shows the models that routes have on trial, and ends a trial by hand.
func canaryCommand(c *console) *cobra.Command {
	var f canaryFlags
	cmd := &cobra.Command{
		Use:   "canary [ROUTE]",
		Short: "Show the models that routes have on trial, promote one or roll it back",
		Long: `Show the models that routes have on trial: their share of the requests, and what the
last judgement found. --promote gives a route's new model all requests, --roll-back none;
--restart begins its trial again at the first step.`,
		GroupID: groupOperate,
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, err := f.verb(len(args))
			if err != nil {
				return err
			}
			a, err := f.admin.client(c)
			if err != nil {
				return err
			}
			path, method := "/api/canaries", http.MethodGet
			if verb != "" {
				path, method = "/api/canaries/"+url.PathEscape(args[0])+"/"+verb, http.MethodPost
			}
			var raw json.RawMessage
			if err := a.ask(cmd.Context(), method, path, nil, &raw); err != nil {
				return err
			}
			if f.admin.json {
				return c.relayed(raw)
			}
			return printCanaries(c.out, raw, args)
		},
	}
	cmd.Flags().BoolVar(&f.promote, "promote", false, "give the new model all requests")
	cmd.Flags().BoolVar(&f.rollBack, "roll-back", false, "give the new model no requests")
	cmd.Flags().BoolVar(&f.again, "restart", false, "begin the trial again")
	f.admin.add(cmd)
	return cmd
}

// verb is what the admin API is asked to do; empty: to show.
func (f *canaryFlags) verb(routes int) (verb string, err error) {
	for _, one := range []struct {
		set  bool
		verb string
	}{{f.promote, "promote"}, {f.rollBack, "rollback"}, {f.again, "restart"}} {
		if one.set && verb != "" {
			return "", usageError("canary: give one of --promote, --roll-back and --restart")
		}
		if one.set {
			verb = one.verb
		}
	}
	if verb != "" && routes == 0 {
		return "", usageError("canary: which route?")
	}
	return verb, nil
}

// printCanaries prints all trials, or those of the named routes.
func printCanaries(out io.Writer, raw json.RawMessage, routes []string) error {
	var answer struct {
		Canaries []control.CanaryShown
		Canary   *control.CanaryShown
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("the canaries in the answer: %w", err)
	}
	list := answer.Canaries
	if answer.Canary != nil {
		list = []control.CanaryShown{*answer.Canary}
	}
	t := newTable(out)
	canaryRows(t, list, func(route string) bool { return len(routes) == 0 || routes[0] == route })
	return t.flush()
}

// canaryRows adds trials to a table, with the routes that are wanted.
func canaryRows(t *table, list []control.CanaryShown, wanted func(route string) bool) {
	t.row("ROUTE", "CANARY", "STATE", "SHARE", "JUDGED", "WHY")
	for _, one := range list {
		if wanted(one.Route) {
			t.row(one.Route, one.Model, one.State, fmt.Sprintf("%.0f %%", 100*one.Share), fmt.Sprintf("%d of %d", one.Trial.Requests, one.MinRequests), orDash(one.Reason))
		}
	}
}
