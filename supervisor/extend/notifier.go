package extend

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"roundhouse/plugins"
	"roundhouse/plugins/pb"
	"roundhouse/supervisor/journal"
)

// Notifiers carries events to plugins, each in order and by itself: one that hangs
// delays nobody else.
type Notifiers struct {
	all []*notifier
}

// notifier is one plugin and what it is still to be told.
type notifier struct {
	plugin *plugins.Plugin
	queue  chan journal.Event
	done   chan struct{}
	failed func(name string, e journal.Event, err error)
}

// mostWaiting is how many events wait for a slow notifier; more are lost, and the
// numbers that it gets show the gap.
const mostWaiting = 1024

// NewNotifiers starts to carry events to the given plugins. failed is told what could
// not be delivered.
func NewNotifiers(all []*plugins.Plugin, failed func(name string, e journal.Event, err error)) *Notifiers {
	n := &Notifiers{}
	for _, p := range all {
		one := &notifier{plugin: p, queue: make(chan journal.Event, mostWaiting), done: make(chan struct{}), failed: failed}
		n.all = append(n.all, one)
		go one.run()
	}
	return n
}

// Tell hands an event to every notifier. It does not wait.
func (n *Notifiers) Tell(e journal.Event) {
	for _, one := range n.all {
		select {
		case one.queue <- e:
		default:
		}
	}
}

// Close delivers what waits and ends.
func (n *Notifiers) Close() {
	for _, one := range n.all {
		close(one.queue)
		<-one.done
	}
}

func (n *notifier) run() {
	defer close(n.done)
	for e := range n.queue {
		err := n.plugin.Call(context.Background(), func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := pb.NewNotifierClient(conn).Notify(ctx, request(e))
			return err
		})
		if err != nil {
			n.failed(n.plugin.Spec().Name, e, err)
		}
	}
}

// request is an event as the plugin reads it.
func request(e journal.Event) *pb.NotifyRequest {
	subject := e.Worker
	if subject == "" {
		subject = e.Pool
	}
	return &pb.NotifyRequest{
		Number: e.ID, AtUnixMs: e.At.UnixMilli(), Kind: e.Kind, Severity: severity(e.Kind), Subject: subject, Text: e.Text,
		Evidence: map[string]string{"who": e.Who, "at": e.At.Format(time.RFC3339Nano)},
	}
}

// severity is how much an event matters to someone who sleeps.
func severity(kind string) string {
	switch kind {
	case "crashed", "failed", "quarantined", "lost", "halted":
		return "error"
	case "abandoned", "leaving", "rolled_back", "drain_forced", "driver", "finding":
		return "warning"
	}
	return "info"
}
