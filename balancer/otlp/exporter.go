package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of an exporter.
const (
	mostQueued = 4096
	mostBatch  = 512
	batchAfter = time.Second
	sendWithin = 10 * time.Second
	endWithin  = 2 * time.Second
	retryAfter = 5 * time.Second // a collector that is away is left alone for so long
)

// Exporter sends spans. Nil is one that takes none.
type Exporter struct {
	url      string
	resource []Attribute
	version  string
	client   *http.Client
	log      *slog.Logger
	queue    chan Span
	stop     chan struct{}
	done     chan struct{}
	once     sync.Once
	ctx      context.Context
	cut      context.CancelFunc
	dropped  atomic.Int64
	away     time.Time // nothing is sent until then
}

// Open makes an exporter to a collector's endpoint. The resource says whose the
// spans are.
func Open(endpoint, version string, resource []Attribute, log *slog.Logger) *Exporter {
	e := &Exporter{
		url: strings.TrimSuffix(endpoint, "/") + "/v1/traces", version: version, resource: resource, log: log,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: 30 * time.Second}, Timeout: sendWithin},
		queue:  make(chan Span, mostQueued), stop: make(chan struct{}), done: make(chan struct{}),
	}
	e.ctx, e.cut = context.WithCancel(context.Background())
	go e.run()
	return e
}

// Take hands a span over. It never waits: a span that finds no room is dropped.
func (e *Exporter) Take(s Span) {
	if e == nil || !s.Sampled {
		return
	}
	select {
	case e.queue <- s:
	default:
		e.dropped.Add(1)
	}
}

// Dropped returns how many spans found no room or no collector.
func (e *Exporter) Dropped() int64 {
	if e == nil {
		return 0
	}
	return e.dropped.Load()
}

// Close sends what is queued, for a moment, and ends the exporter.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	e.once.Do(func() {
		close(e.stop)
		time.AfterFunc(endWithin, e.cut) // a collector that hangs holds nobody up
	})
	<-e.done
	e.cut()
	e.client.CloseIdleConnections()
}

func (e *Exporter) run() {
	defer close(e.done)
	tick := time.NewTicker(batchAfter)
	defer tick.Stop()
	var batch []Span
	for {
		select {
		case s := <-e.queue:
			if batch = append(batch, s); len(batch) < mostBatch {
				continue
			}
		case <-tick.C:
		case <-e.stop:
			e.rest(batch)
			return
		}
		e.send(batch)
		batch = batch[:0]
	}
}

// rest sends what is left at the end.
func (e *Exporter) rest(batch []Span) {
	for {
		select {
		case s := <-e.queue:
			if batch = append(batch, s); len(batch) < mostBatch {
				continue
			}
			e.send(batch)
			batch = batch[:0]
			continue
		default:
		}
		e.send(batch)
		return
	}
}

// send posts one batch; what the collector does not take is dropped.
func (e *Exporter) send(batch []Span) {
	if len(batch) == 0 {
		return
	}
	if time.Now().Before(e.away) {
		e.dropped.Add(int64(len(batch)))
		return
	}
	err := e.post(batch)
	if err == nil {
		return
	}
	e.dropped.Add(int64(len(batch)))
	e.away = time.Now().Add(retryAfter)
	e.log.Warn("traces were not taken", "endpoint", e.url, "spans", len(batch), "error", err.Error())
}

func (e *Exporter) post(batch []Span) error {
	spans := make([]wireSpan, len(batch))
	for i := range batch {
		spans[i] = batch[i].wire()
	}
	body, err := json.Marshal(wireRequest{[]wireResource{{
		Resource:   wireAttributes{wireOf(e.resource)},
		ScopeSpans: []wireScope{{Scope: wireName{"roundhouse", e.version}, Spans: spans}},
	}}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(e.ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answered %s", resp.Status)
	}
	return err
}
