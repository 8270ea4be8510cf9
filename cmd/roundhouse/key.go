package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/keyfile"
	"roundhouse/configs"
)

// keyCommand makes a client's key.
func keyCommand(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "key NAME",
		Short: "Make clients' keys, for the configuration or at run time",
		Long: `Make a key for a client. The key is printed once and kept nowhere; the block
that goes into the configuration's door holds its SHA-256 only. To replace a
key, put the new sha256 beside the old one, reload, and take the old one out
when the client has changed over.

key add makes one that holds at once, without a file and a reload; key ls lists
all, with their budgets; key rm revokes one that was made so.`,
		GroupID: groupConfig,
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			key, digits := keyfile.NewKey()
			block := fmt.Sprintf("key %q {\n  sha256 = [%q]\n}", args[0], digits)
			if asJSON {
				return c.printJSON(map[string]any{"schema": 1, "name": args[0], "key": key, "sha256": digits, "block": block})
			}
			fmt.Fprintf(c.err, "The key of %s, for its client. It is shown this once.\n", args[0])
			fmt.Fprintln(c.out, key)
			fmt.Fprintf(c.err, "\nIts block, for the door block of the configuration; then `roundhouse reload`:\n")
			fmt.Fprintln(c.out, block)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the key and its block as JSON")
	cmd.AddCommand(keyAdd(c), keyList(c), keyRemove(c))
	return cmd
}

// keyAdd makes a key at run time. The key is made here: its hash alone is sent.
func keyAdd(c *console) *cobra.Command {
	var f adminFlags
	var expires string
	k := configs.NewKey("")
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a key that holds at once, and print it this once",
		Long: `Make a key that every door takes at once. It is printed this once; its SHA-256
is kept in the state folder (keys.json). From the first key on the door asks
every client for one. --sha256 takes a key that exists, by its hash.
A budget counts what is answered; a request beyond it gets 429 insufficient_quota.`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			k.Name = args[0]
			key := ""
			if len(k.SHA256) == 0 {
				var sum string
				key, sum = keyfile.NewKey()
				k.SHA256 = []string{sum}
			}
			var err error
			if k.Expires, err = expiry(expires, time.Now()); err != nil {
				return err
			}
			a, err := f.client(c)
			if err != nil {
				return err
			}
			var done control.KeyAdded
			if err := a.ask(cmd.Context(), http.MethodPost, "/api/keys", k, &done); err != nil {
				return err
			}
			if done.Key = key; f.json {
				return c.printJSON(done)
			}
			if key != "" {
				fmt.Fprintf(c.err, "The key of %s, for its client. It is shown this once.\n", k.Name)
				fmt.Fprintln(c.out, key)
			}
			if done.First {
				fmt.Fprintln(c.err, "It is the first: from now on the door asks every client for a key.")
			}
			fmt.Fprintln(c.err, taken(done.Taken))
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&k.SHA256, "sha256", nil, "the SHA-256 of a key that exists, in hexadecimal digits, instead of a new key")
	fl.StringSliceVar(&k.Models, "model", k.Models, "the models and routes that it may ask for; * is all")
	fl.StringSliceVar(&k.Pools, "pool", nil, "the pools that it may use (default all)")
	fl.IntVar(&k.RequestsPerMinute, "requests-per-minute", 0, "0: no limit")
	fl.IntVar(&k.TokensPerMinute, "tokens-per-minute", 0, "0: no limit")
	fl.IntVar(&k.MaxConcurrent, "max-concurrent", 0, "requests at once; 0: no limit")
	fl.StringVar(&k.Priority, "priority", k.Priority, "high, normal or low")
	fl.IntVar(&k.Weight, "weight", k.Weight, "its share among the keys of one priority")
	fl.StringVar(&expires, "expires", "", `when it ends: "30d", "12h", "2027-01-31" or "2027-01-31T18:00:00Z" (default never)`)
	for period, b := range map[string]*configs.Budget{"day": &k.Day, "month": &k.Month} {
		fl.Int64Var(&b.Requests, period+"-requests", 0, "budget: requests a "+period)
		fl.Int64Var(&b.Tokens, period+"-tokens", 0, "budget: tokens a "+period+", of prompts and answers")
		fl.Int64Var(&b.TokensIn, period+"-tokens-in", 0, "budget: tokens of prompts a "+period)
		fl.Int64Var(&b.TokensOut, period+"-tokens-out", 0, "budget: tokens of answers a "+period)
	}
	f.add(cmd)
	return cmd
}

// expiry reads when a key ends, as RFC 3339; empty: never. A day begins in UTC.
func expiry(s string, now time.Time) (string, error) {
	var days int
	if n, err := fmt.Sscanf(s, "%dd", &days); n == 1 && err == nil && s == fmt.Sprintf("%dd", days) && days > 0 && days <= 36500 {
		return now.UTC().AddDate(0, 0, days).Format(time.RFC3339), nil
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.UTC().Add(d).Format(time.RFC3339), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Format(time.RFC3339), nil
		}
	}
	if s != "" {
		return "", usageError(`--expires %s: write "30d", "12h", "2027-01-31" or "2027-01-31T18:00:00Z"`, s)
	}
	return "", nil
}

// taken says who has taken a change up.
func taken(t control.Taken) string {
	if len(t.Waiting) > 0 {
		return fmt.Sprintf("%d doors have taken it up; %s will as soon as it answers.", t.Doors, strings.Join(t.Waiting, ", "))
	}
	return fmt.Sprintf("Taken up by %d doors.", t.Doors)
}

func keyList(c *console) *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the keys, with what they may use and have used",
		Args:  usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := f.client(c)
			if err != nil {
				return err
			}
			var all control.KeysShown
			if err := a.ask(cmd.Context(), http.MethodGet, "/api/keys", nil, &all); err != nil {
				return err
			}
			if f.json {
				return c.printJSON(all)
			}
			for _, fault := range all.Faults {
				fmt.Fprintln(c.err, fault)
			}
			if !all.Asked {
				fmt.Fprintln(c.err, "No key is asked for: everybody who reaches the door is served.")
			}
			t := newTable(c.out)
			t.row("NAME", "SOURCE", "EXPIRES", "MODELS", "POOLS", "IN USE", "BUDGETS")
			for _, k := range all.Keys {
				t.row(k.Name, sourceOf(&k), expiresOf(&k), list(k.Models), list(k.Pools), liveOf(&k), budgetsOf(&k))
			}
			return t.flush()
		},
	}
	f.add(cmd)
	return cmd
}

func sourceOf(k *control.KeyShown) string {
	if k.Shadowed {
		return "made (shadowed)"
	}
	return k.Source
}

func expiresOf(k *control.KeyShown) string {
	switch {
	case k.Expires == nil:
		return "never"
	case k.Expired:
		return "expired"
	}
	return k.Expires.UTC().Format("2006-01-02 15:04")
}

func list(s []string) string {
	if len(s) == 0 {
		return "*"
	}
	return strings.Join(s, ",")
}

func liveOf(k *control.KeyShown) string {
	if k.Live == nil {
		return "?"
	}
	return fmt.Sprint(*k.Live)
}

func budgetsOf(k *control.KeyShown) string {
	var out []string
	for _, b := range k.Budgets {
		used := "?"
		if b.Used != nil {
			used = fmt.Sprint(*b.Used)
		}
		out = append(out, fmt.Sprintf("%s/%d %s a %s", used, b.Limit, b.Kind, b.Period))
	}
	return strings.Join(out, ", ")
}

func keyRemove(c *console) *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Revoke a key that was made at run time",
		Long: `Revoke a key that was made at run time. Its next request is refused; requests
that run go on to their end (DELETE /api/requests/ID ends one). A key of the
configuration is revoked there.`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := f.client(c)
			if err != nil {
				return err
			}
			var done control.KeyRemoved
			if err := a.ask(cmd.Context(), http.MethodDelete, "/api/keys"+escaped(args[0]), nil, &done); err != nil {
				return err
			}
			if f.json {
				return c.printJSON(done)
			}
			fmt.Fprintf(c.out, "%s is revoked. %s\n", args[0], taken(done.Taken))
			if done.Live != nil && *done.Live > 0 {
				fmt.Fprintf(c.out, "%d of its requests run, and go on to their end.\n", *done.Live)
			}
			if done.Left == 0 {
				fmt.Fprintln(c.out, "No key is left: every client is refused until there is one.")
			}
			return nil
		},
	}
	f.add(cmd)
	return cmd
}
