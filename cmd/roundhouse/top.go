package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/balancer/control"
	"roundhouse/configs/workerid"
	"roundhouse/live"
	"roundhouse/top"
)

// topCommand shows the state in a terminal.
func topCommand(c *console) *cobra.Command {
	var f adminFlags
	var once, ascii bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show workers, pools and the verdict in the terminal, and act on them",
		Long: `Show workers, pools and the verdict in the terminal, as the console shows them.

s sorts, / filters, space tags, enter opens a worker, l its log, e explains where
requests went, v shows events, d drains, u undrains, r rotates (y confirms), p
pauses, ? tells of all keys, q ends. Where the output is no terminal, or with
-1, one picture is printed. NO_COLOR takes the colours away.`,
		GroupID: groupLook,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := f.client(c)
			if err != nil {
				return err
			}
			_, plain := c.env("NO_COLOR")
			s := &top.Screen{Wide: 200, High: 50, Plain: plain || !isTerminal(c.out), ASCII: ascii, House: &top.House{}}
			in, isFile := c.in.(*os.File)
			out, toFile := c.out.(*os.File)
			if once || f.json || !isFile || !toFile || !isTerminal(c.out) || !isTerminal(in) {
				return topOnce(cmd.Context(), c, a, s, f.json)
			}
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			first, err := a.open(ctx, http.MethodGet, "/api/stream", nil)
			if err != nil {
				return err
			}
			messages := make(chan top.Message, 64)
			go a.stream(ctx, first, messages)
			return top.Run(ctx, in, out, s, messages, a.look, a.act)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVarP(&once, "once", "1", false, "print one picture and end")
	cmd.Flags().BoolVar(&ascii, "ascii", false, "draw with plain characters")
	return cmd
}

// topOnce prints one picture, or the state as JSON.
func topOnce(ctx context.Context, c *console, a *client, s *top.Screen, asJSON bool) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	body, err := a.open(ctx, http.MethodGet, "/api/stream", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	errSeen := errors.New("the state has come")
	err = readStream(body, func(m top.Message) error {
		if err := s.House.Take(m.Name, m.Data, time.Now()); err != nil {
			return err
		}
		if m.Name == "state" {
			return errSeen
		}
		return nil
	})
	if !errors.Is(err, errSeen) {
		return fmt.Errorf("the stream of %s ended before it told the state: %w", a.where, err)
	}
	if asJSON {
		return c.printJSON(s.House.State)
	}
	s.Now = time.Now()
	for _, line := range s.Once() {
		if _, err := fmt.Fprintln(c.out, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// stream hands the messages of a stream over, and opens it anew whenever it ends.
func (a *client) stream(ctx context.Context, body io.ReadCloser, out chan<- top.Message) {
	say := func(m top.Message) error {
		select {
		case out <- m:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for ctx.Err() == nil {
		err := error(nil)
		if body == nil {
			body, err = a.open(ctx, http.MethodGet, "/api/stream", nil)
		}
		if err == nil {
			err = readStream(body, say)
			body.Close()
		}
		body = nil
		if say(top.Message{Err: err}) != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// mostMessage bounds one message of a stream.
const mostMessage = 64 << 20

// readStream reads server-sent events until they end, or take has enough.
func readStream(body io.Reader, take func(top.Message) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), mostMessage)
	var m top.Message
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event":
			m.Name = value
		case "data":
			m.Data = []byte(value)
		case "":
			if m.Name != "" {
				if err := take(m); err != nil {
					return err
				}
			}
			m = top.Message{}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.EOF
}

// look asks for what a view of `top` shows beside the state.
func (a *client) look(ctx context.Context, w top.Want) (got top.Seen) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	fail := func(err error) top.Seen { return top.Seen{Error: err.Error()} }
	if w.View == "log" {
		pool, name := workerid.Split(w.Worker)
		text, err := a.text(ctx, "/api/workers"+escaped(pool, name, "logs")+"?tail=500")
		if err != nil {
			return fail(err)
		}
		got.Lines = strings.Split(strings.TrimRight(text, "\n"), "\n")
		return got
	}
	var all control.Decisions
	if err := a.ask(ctx, http.MethodGet, "/api/decisions?limit=200", nil, &all); err != nil {
		return fail(err)
	}
	for _, d := range all.Decisions {
		of := func(c control.Candidate) bool { return c.Worker == w.Worker }
		if w.Worker == "" || d.Chosen == w.Worker || slices.ContainsFunc(d.Candidates, of) {
			got.Choices = append(got.Choices, d)
		}
	}
	return got
}

// act does what was decided in `top`, and says what it came to.
func (a *client) act(ctx context.Context, act top.Act) string {
	for _, id := range act.Workers {
		pool, name := workerid.Split(id)
		if err := a.ask(ctx, http.MethodPost, "/api/workers"+escaped(pool, name, act.Verb), nil, nil); err != nil {
			return live.Clean(fmt.Sprintf("%s %s: %v", act.Verb, id, err))
		}
	}
	return live.Clean(fmt.Sprintf("%s %s: asked for", act.Verb, strings.Join(act.Workers, ", ")))
}
