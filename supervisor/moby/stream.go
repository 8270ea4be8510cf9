package moby

import (
	"context"
	"errors"
	"io"
	"syscall"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"roundhouse/supervisor/driver"
)

// Output turns an engine's log stream, in which standard output and error take
// turns, into what was written. It ends with raw, which is closed with it.
func Output(raw io.ReadCloser) io.ReadCloser {
	out, in := io.Pipe()
	go func() { // ends with the stream, which its context or the reader's Close ends
		_, err := stdcopy.StdCopy(in, in, raw)
		raw.Close()
		in.CloseWithError(err)
	}()
	return out
}

// Unreachable reports whether an error says of an engine that it was not there.
func Unreachable(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return client.IsErrConnectionFailed(err)
}

// Follow hints at each of an engine's events until their stream breaks, and first that
// it begins now: what happened before is found by listing.
func Follow(ctx context.Context, e interface {
	Events(ctx context.Context, options events.ListOptions) (<-chan events.Message, <-chan error)
}, of filters.Args, hint driver.Hint) {
	messages, errs := e.Events(ctx, events.ListOptions{Filters: of})
	for hint.Give(); ; hint.Give() {
		select {
		case _, open := <-messages:
			if !open {
				return
			}
		case <-errs:
			return
		}
	}
}
