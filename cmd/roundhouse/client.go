package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/balancer/control"
)

// defaultAdmin is where the admin API is if nothing says otherwise.
const defaultAdmin = "127.0.0.1:8001"

// adminFlags are what every command takes that asks or tells a running
// roundhouse.
type adminFlags struct {
	addr string
	file string
	json bool
}

func (f *adminFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.addr, "admin", "", "the admin API: HOST:PORT, http://…, or unix:///PATH (default "+defaultAdmin+")")
	cmd.Flags().StringVarP(&f.file, "config", "c", "", "the configuration file that says where the admin API is, and its token")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the answer as JSON")
}

// client asks one admin API.
type client struct {
	base  string // http://host:port
	where string // as the operator knows it
	token string
	http  *http.Client
}

// client makes the client that the flags ask for.
func (f *adminFlags) client(c *console) (*client, error) {
	where := defaultAdmin
	token, _ := c.env("ROUNDHOUSE_ADMIN_TOKEN")
	if f.file != "" {
		cfg, err := c.load(f.file)
		if err != nil {
			return nil, err
		}
		where = cfg.Admin.Listen
		if t := cfg.Admin.Token.Reveal(); t != "" {
			token = t
		}
	}
	if f.addr != "" {
		where = f.addr
	}
	return newClient(where, token)
}

func newClient(where, token string) (*client, error) {
	a := &client{where: where, token: token}
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext}
	a.http = &http.Client{Transport: transport}
	switch {
	case strings.HasPrefix(where, "unix://"):
		path := strings.TrimPrefix(where, "unix://")
		a.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", path)
		}
	case strings.HasPrefix(where, "http://"), strings.HasPrefix(where, "https://"):
		a.base = strings.TrimRight(where, "/")
	default:
		host, port, err := net.SplitHostPort(where)
		if err != nil {
			return nil, usageError("--admin %s: write HOST:PORT, http://… or unix:///PATH", where)
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		a.base = "http://" + net.JoinHostPort(host, port)
	}
	return a, nil
}

// apiError is an answer of the admin API other than success.
type apiError struct {
	status  int
	message string
}

func (e *apiError) Error() string { return e.message }

// open sends a request and returns the body of a successful answer.
func (a *client) open(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	res, err := a.send(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// send sends a request and returns a successful answer.
func (a *client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		payload = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, payload)
	if err != nil {
		return nil, usageError("%w", err)
	}
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	if me, err := user.Current(); err == nil {
		req.Header.Set(control.OperatorHeader, me.Username)
	}
	res, err := a.http.Do(req)
	if err != nil {
		return nil, a.unreachable(err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, a.refused(res)
}

// unreachable says that nobody answers, and what to look at.
func (a *client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return &codedError{exitUnreachable, fmt.Errorf("nothing answers at %s (%w): is roundhouse running? --admin ADDR or -c FILE says where", a.where, err)}
}

// refused turns an answer other than success into an error.
func (a *client) refused(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // what there is of it
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	e := &apiError{status: res.StatusCode}
	switch {
	case json.Unmarshal(text, &body) == nil && body.Error.Message != "":
		e.message = body.Error.Message
	case res.StatusCode == http.StatusNotFound:
		e.message = fmt.Sprintf("%s answers, but knows no %s; is it roundhouse, and of this version?", a.where, res.Request.URL.Path)
	default:
		e.message = fmt.Sprintf("%s answers with status %s", a.where, res.Status)
	}
	if res.StatusCode == http.StatusUnauthorized {
		e.message += "; give it by ROUNDHOUSE_ADMIN_TOKEN or -c FILE"
	}
	return e
}

// ask sends a request and decodes the answer into out, which may be nil.
func (a *client) ask(ctx context.Context, method, path string, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stream, err := a.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, 64<<20))
	if err != nil {
		return fmt.Errorf("the answer of %s broke off: %w", a.where, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s answers with what is not the admin API's JSON: %w", a.where, err)
	}
	return nil
}

// relayed prints a successful answer as it came, indented.
func (c *console) relayed(text json.RawMessage) error {
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := out.WriteTo(c.out)
	return err
}

// workers asks for all workers.
func (a *client) workers(ctx context.Context) (workersAnswer, error) {
	var w workersAnswer
	err := a.ask(ctx, http.MethodGet, "/api/workers", nil, &w)
	return w, err
}

// pools asks for door, supervisor and pools.
func (a *client) pools(ctx context.Context) (poolsAnswer, []poolAnswer, error) {
	var p poolsAnswer
	if err := a.ask(ctx, http.MethodGet, "/api/pools", nil, &p); err != nil {
		return p, nil, err
	}
	var list []poolAnswer
	if err := json.Unmarshal(p.Pools, &list); err != nil {
		return p, nil, fmt.Errorf("%s: the pools in its answer: %w", a.where, err)
	}
	return p, list, nil
}

// escaped joins the parts of a path, each escaped.
func escaped(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}
