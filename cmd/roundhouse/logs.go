package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// logsCommand shows what workers have written.
func logsCommand(c *console) *cobra.Command {
	var f adminFlags
	var follow bool
	var tail int
	cmd := &cobra.Command{
		Use:   "logs POOL|POOL/NAME|NAME|door",
		Short: "Show what workers, or the door, have written",
		Long: `Show what workers have written, or the door. With several workers each line
begins with its worker's name. With --json, one object a line.`,
		GroupID: groupLook,
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := f.client(c)
			if err != nil {
				return err
			}
			query := fmt.Sprintf("?tail=%d&follow=%t", tail, follow)
			_, workers, err := a.resolve(cmd.Context(), args[0])
			if err != nil && args[0] == "door" { // unless a pool or a worker has that name
				p := &logPrinter{console: c, json: f.json}
				return p.one(cmd.Context(), a, selection{pool: "door"}, "/api/door/logs"+query)
			}
			if err != nil {
				return err
			}
			ids := make([]selection, len(workers))
			for i, w := range workers {
				ids[i] = selection{w.Pool, w.Name}
			}
			p := &logPrinter{console: c, named: len(ids) > 1, json: f.json}
			return p.all(cmd.Context(), a, ids, query)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is written from now on")
	cmd.Flags().IntVarP(&tail, "tail", "n", 100, "how many of the last lines; 0: all")
	return cmd
}

// logPrinter prints lines of several logs, whole lines only.
type logPrinter struct {
	*console
	named bool // lines begin with the worker's name
	json  bool
	mu    sync.Mutex // guards out
}

// all prints every log. Without --follow that is one after the other; with
// it, all at once.
func (p *logPrinter) all(ctx context.Context, a *client, ids []selection, query string) error {
	if !strings.HasSuffix(query, "follow=true") {
		for _, id := range ids {
			if err := p.one(ctx, a, id, logsOf(id)+query); err != nil {
				return err
			}
		}
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(ids))
	for _, id := range ids {
		go func() { ended <- p.one(ctx, a, id, logsOf(id)+query) }()
	}
	var failed error
	for range ids {
		if err := <-ended; err != nil && failed == nil {
			failed = err
			cancel()
		}
	}
	return failed
}

// logsOf is where the admin API has a worker's log.
func logsOf(id selection) string { return "/api/workers" + escaped(id.pool, id.name, "logs") }

func (p *logPrinter) one(ctx context.Context, a *client, id selection, url string) error {
	stream, err := a.open(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	defer stream.Close()
	in := bufio.NewReader(stream)
	for {
		line, err := in.ReadString('\n')
		if text := strings.TrimRight(line, "\r\n"); line != "" {
			if err := p.print(id, text); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the log of %s broke off: %w", id, err)
		}
	}
}

func (p *logPrinter) print(id selection, line string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	switch {
	case p.json:
		err = printLine(p.out, map[string]string{"worker": id.String(), "line": line})
	case p.named:
		_, err = fmt.Fprintf(p.out, "%s | %s\n", id, printable(line))
	default:
		_, err = fmt.Fprintln(p.out, printable(line))
	}
	return err
}
