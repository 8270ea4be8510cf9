package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// previousProgram names, for the program that an upgrade executes, the
// descriptor of the one before it, which it executes if it cannot begin.
const previousProgram = "ROUNDHOUSE_PREVIOUS_PROGRAM"

// upgradeCommand has a running roundhouse execute its program file anew.
func upgradeCommand(c *console) *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Go on with the program that now lies where this one did",
		Long: `Have a running roundhouse go on with the program that now lies in its place.
The new program is asked for its version and must take the configuration, or
nothing is changed. It adopts the workers; a new door takes the listener over
from the old one, which serves its streams to their end. No request is lost.`,
		GroupID: groupOperate,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := f.client(c)
			if err != nil {
				return err
			}
			var answer struct{ From, To string }
			if err := a.ask(cmd.Context(), http.MethodPost, "/api/upgrade", nil, &answer); err != nil {
				return err
			}
			if err := awaitVersion(cmd.Context(), a, answer.To); err != nil {
				return err
			}
			if f.json {
				return c.printJSON(map[string]any{"schema": 1, "from": answer.From, "to": answer.To})
			}
			fmt.Fprintf(c.out, "upgraded from %s to %s\n", answer.From, answer.To)
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

// awaitVersion waits until supervisor and door are of the given version.
func awaitVersion(ctx context.Context, a *client, want string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		var v struct{ Version, Door string }
		if err := a.ask(ctx, http.MethodGet, "/api/version", nil, &v); err == nil && v.Version == want && v.Door == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("version %s is not all in place after two minutes; see `roundhouse events`", want)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// executeAnew replaces this process by the program that lies in its file now.
// The present one is kept open: the next goes back to it if it cannot begin.
func executeAnew() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	previous, err := unix.Open("/proc/self/exe", unix.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot keep the present program: %w", err)
	}
	env := append(os.Environ(), previousProgram+"="+strconv.Itoa(previous))
	err = syscall.Exec(program, os.Args, env)
	return fmt.Errorf("cannot execute %s: %w", program, err)
}

// keepToOurselves keeps the program before from our children.
func (c *console) keepToOurselves() {
	if fd, ok := c.env(previousProgram); ok {
		if n, err := strconv.Atoi(fd); err == nil {
			unix.CloseOnExec(n)
		}
	}
}

// goBack executes the program before an upgrade when this one cannot begin.
func (c *console) goBack(why error) error {
	fd, ok := c.env(previousProgram)
	if !ok {
		return why
	}
	fmt.Fprintf(c.err, "the upgrade fails and is taken back: %v\n", why)
	os.Unsetenv(previousProgram)
	err := syscall.Exec("/proc/self/fd/"+fd, os.Args, os.Environ())
	return fmt.Errorf("%w; and the program before cannot be executed: %w", why, err)
}

// arrived lets go of the program before.
func (c *console) arrived() {
	if fd, ok := c.env(previousProgram); ok {
		if n, err := strconv.Atoi(fd); err == nil {
			unix.Close(n)
		}
		os.Unsetenv(previousProgram)
	}
}
