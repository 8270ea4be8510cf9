package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/balancer/control"
	"roundhouse/configs"
)

// consoleCommand leads a browser to the console.
func consoleCommand(c *console) *cobra.Command {
	var f adminFlags
	var open bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Print the console's address with a one-time code, or open it",
		Long: `Print the address of the console with a code that is good once, for 30 seconds. It
gives the browser a token of its own, with the rights of whoever asked for it.

An admin API on a unix socket is not within a browser's reach: for that one this
command listens on a port of 127.0.0.1 until it is ended.`,
		GroupID: groupLook,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := f.client(c)
			if err != nil {
				return err
			}
			if strings.HasPrefix(a.where, "unix://") {
				return bridge(cmd.Context(), c, a, open)
			}
			return lead(cmd.Context(), c, a, open)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&open, "open", false, "open it in this machine's browser")
	return cmd
}

// lead prints the address with a code, or has a browser open it.
func lead(ctx context.Context, c *console, a *client, open bool) error {
	var code control.CodeShown
	if err := a.ask(ctx, http.MethodPost, "/api/code", nil, &code); err != nil {
		return err
	}
	address := a.base + "/ui/#code=" + url.QueryEscape(code.Code)
	if u, err := url.Parse(a.base); err == nil && u.Scheme == "http" && a.token != "" {
		if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			fmt.Fprintln(c.err, "whoever is between here and there can read along: plain HTTP off this machine. ssh -L, and the address 127.0.0.1, are better.")
		}
	}
	if open {
		if err := exec.CommandContext(ctx, "xdg-open", address).Run(); err == nil {
			fmt.Fprintln(c.out, "opened "+a.base+"/ui/")
			return nil
		}
		fmt.Fprintln(c.err, "no browser can be opened from here; open this one within 30 seconds:")
	}
	_, err := fmt.Fprintln(c.out, address)
	return err
}

// bridge lets a browser of this machine reach an admin API on a unix socket, as long as
// it runs. A token of its own keeps other users of the machine out.
func bridge(ctx context.Context, c *console, a *client, open bool) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	token := rand.Text()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "localhost", "localhost"
			for _, name := range []string{"Authorization", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode"} { // they were looked at here
				r.Out.Header.Del(name)
			}
			if a.token != "" {
				r.Out.Header.Set("Authorization", "Bearer "+a.token)
			}
		},
		Transport: a.http.Transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			control.Fail(w, http.StatusBadGateway, a.where+" does not answer: "+err.Error())
		},
	}
	cfg := configs.Admin{Listen: l.Addr().String(), Token: configs.Secret(token)}
	server := &http.Server{Handler: control.Guard(cfg, proxy), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	near, err := newClient(l.Addr().String(), token)
	if err == nil {
		err = lead(ctx, c, near, open)
	}
	if err == nil {
		fmt.Fprintln(c.err, "Ctrl-C ends the bridge to "+a.where)
		select {
		case <-ctx.Done():
		case err = <-ended:
		}
	}
	server.Close()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}
