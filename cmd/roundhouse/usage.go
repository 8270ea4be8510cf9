package main

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"roundhouse/balancer/control"
)

// usageCommand exports what was used.
func usageCommand(c *console) *cobra.Command {
	var f adminFlags
	var from, to string
	var asCSV bool
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show or export what was used, by key, model and day",
		Long: `Show what the engines were used for, by key, model and day: requests and tokens,
as the engines count them. It is kept for thirteen months in the state folder;
days begin where door.budget_timezone says (UTC).`,
		GroupID: groupOperate,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asCSV && f.json {
				return usageError("--csv and --json are two forms: choose one")
			}
			a, err := f.client(c)
			if err != nil {
				return err
			}
			var u control.Usage
			q := url.Values{}
			for name, day := range map[string]string{"from": from, "to": to} {
				if day != "" {
					q.Set(name, day)
				}
			}
			if err := a.ask(cmd.Context(), http.MethodGet, "/api/usage?"+q.Encode(), nil, &u); err != nil {
				return err
			}
			switch {
			case f.json:
				return c.printJSON(u)
			case asCSV:
				return writeUsage(c, u.Rows)
			}
			t := newTable(c.out)
			t.row("DAY", "KEY", "MODEL", "REQUESTS", "TOKENS IN", "CACHED", "OUT")
			for _, r := range u.Rows {
				t.row(r.Day, r.Key, r.Model, r.Requests, r.TokensIn, r.TokensCached, r.TokensOut)
			}
			if err := t.flush(); err != nil {
				return err
			}
			fmt.Fprintf(c.err, "From %s to %s, days of %s.\n", u.From, u.To, u.Timezone)
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the first day, such as 2026-11-01 (default the first of this month)")
	cmd.Flags().StringVar(&to, "to", "", "the last day (default today)")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "write CSV")
	f.add(cmd)
	return cmd
}

func writeUsage(c *console, rows []control.UsageRow) error {
	w := csv.NewWriter(c.out)
	out := [][]string{{"day", "key", "model", "requests", "tokens_in", "tokens_cached", "tokens_out"}}
	for _, r := range rows {
		line := []string{r.Day, cell(r.Key), cell(r.Model)}
		for _, n := range []int64{r.Requests, r.TokensIn, r.TokensCached, r.TokensOut} {
			line = append(line, strconv.FormatInt(n, 10))
		}
		out = append(out, line)
	}
	return w.WriteAll(out)
}

// cell is a name that no spreadsheet takes for a formula.
func cell(s string) string {
	if s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@') {
		return "'" + s
	}
	return s
}
