package kube

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Watch keeps the objects of a collection in view.
type Watch[T any] struct {
	Client *Client
	Path   string     // of the collection
	Query  url.Values // labelSelector and the like
	// Fault is told why the objects are not in view, again and again while they are not,
	// and nil whenever they are.
	Fault func(error)
	// Seen takes all objects whenever they have changed, by their UIDs. It must not keep
	// the map.
	Seen func(all map[string]T)

	all     map[string]T
	version string
	heard   bool // the present watch has said something
	silence time.Duration
	pause   time.Duration
}

// The bounds of how the server is asked.
const (
	pageOf     = 500
	mostPages  = 1000
	mostObject = 16 << 20 // bytes of an event
	mostPage   = 256 << 20
	// silent is how long a watch may say nothing: the server sends bookmarks about once a
	// minute.
	silent     = 100 * time.Second
	watchFor   = 5 * time.Minute
	firstPause = 200 * time.Millisecond // and 100 times as long at most
)

// meta is what of an object's metadata a watch needs.
type meta struct {
	Metadata struct {
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
}

// errGone says that the server does not know what came after the version that was asked
// from: all must be listed again.
var errGone = errors.New("the version is gone")

// errSilent says that a watch has said nothing for too long, not even by a bookmark.
var errSilent = errors.New("the watch is silent")

// Run lists the objects and watches them until ctx ends. Whatever the server does, what
// was seen last stays.
func (w *Watch[T]) Run(ctx context.Context) {
	w.silence, w.pause = cmp.Or(w.silence, silent), cmp.Or(w.pause, firstPause)
	most, pause := 100*w.pause, w.pause
	for ctx.Err() == nil {
		err := w.list(ctx)
		for err == nil && ctx.Err() == nil {
			w.heard = false
			err = w.watch(ctx)
			if w.heard {
				pause = w.pause
			}
			if err == nil { // an end in order
				if !sleep(ctx, jittered(pause)) {
					return
				}
				pause = min(2*pause, most)
			}
		}
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, errGone) && !errors.Is(err, errSilent) {
			w.Fault(err)
		}
		if !sleep(ctx, jittered(pause)) {
			return
		}
		pause = min(2*pause, most)
	}
}

func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// sleep waits, and reports whether ctx still holds.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// query is the watch's query with more.
func (w *Watch[T]) query(more ...string) string {
	q := url.Values{}
	for k, v := range w.Query {
		q[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return w.Path + "?" + q.Encode()
}

// list takes all objects in, page after page. Only a list that came whole replaces what
// was seen.
func (w *Watch[T]) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	all, version, more := map[string]T{}, "", ""
	for n := 0; ; n++ {
		if n == mostPages {
			return fmt.Errorf("the list of %s does not end after %d pages", w.Path, n)
		}
		args := []string{"limit", strconv.Itoa(pageOf)}
		if more != "" {
			args = append(args, "continue", more)
		}
		page, err := w.page(ctx, w.query(args...), all)
		if err != nil {
			return err
		}
		version = page.Metadata.ResourceVersion
		if more = page.Metadata.Continue; more == "" {
			break
		}
	}
	if version == "" {
		return fmt.Errorf("the list of %s has no resourceVersion", w.Path)
	}
	w.all, w.version = all, version
	w.Seen(all)
	return nil
}

// page takes one page of a list in.
func (w *Watch[T]) page(ctx context.Context, path string, all map[string]T) (m meta, err error) {
	body, err := w.Client.get(ctx, path)
	if err != nil {
		var refused *Refused
		if errors.As(err, &refused) && refused.Status == http.StatusGone {
			return m, errGone
		}
		return m, err
	}
	defer body.Close()
	var page struct {
		meta
		Items []json.RawMessage `json:"items"`
	}
	if err := json.NewDecoder(io.LimitReader(body, mostPage)).Decode(&page); err != nil {
		return m, fmt.Errorf("the list of %s: %w", w.Path, err)
	}
	for _, raw := range page.Items {
		if _, err := w.put(all, raw); err != nil {
			return m, err
		}
	}
	return page.meta, nil
}

// put takes an object in.
func (w *Watch[T]) put(all map[string]T, raw []byte) (m meta, err error) {
	var object T
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("an object of %s: %w", w.Path, err)
	}
	if m.Metadata.UID == "" {
		return m, fmt.Errorf("an object of %s has no uid", w.Path)
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return m, fmt.Errorf("the object %s of %s: %w", m.Metadata.UID, w.Path, err)
	}
	all[m.Metadata.UID] = object
	return m, nil
}

// watch takes changes in until the server ends the watch, which is nil, or fails.
func (w *Watch[T]) watch(whole context.Context) error {
	ctx, cancel := context.WithCancel(whole)
	defer cancel()
	body, err := w.Client.get(ctx, w.query("watch", "1", "allowWatchBookmarks", "true", "resourceVersion", w.version,
		"timeoutSeconds", strconv.Itoa(int(watchFor.Seconds()))))
	var refused *Refused
	if errors.As(err, &refused) && refused.Status == http.StatusGone {
		return errGone
	}
	if err != nil {
		return err
	}
	defer body.Close()
	w.Fault(nil)
	quiet := time.AfterFunc(w.silence, cancel) // a connection that died unheard
	defer quiet.Stop()
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), mostObject)
	for lines.Scan() {
		quiet.Reset(w.silence)
		w.heard = true
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := w.event(lines.Bytes()); err != nil {
			return err
		}
	}
	if ctx.Err() != nil && whole.Err() == nil {
		return errSilent // what it has missed, a list tells
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // it goes on from the last version
}

// event takes one change in.
func (w *Watch[T]) event(line []byte) error {
	var e struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("a change of %s: %w", w.Path, err)
	}
	switch e.Type {
	case "ADDED", "MODIFIED", "DELETED":
		m, err := w.put(w.all, e.Object)
		if err != nil {
			return err
		}
		if e.Type == "DELETED" {
			delete(w.all, m.Metadata.UID)
		}
		w.version = m.Metadata.ResourceVersion
		w.Seen(w.all)
	case "BOOKMARK":
		var m meta
		if err := json.Unmarshal(e.Object, &m); err != nil || m.Metadata.ResourceVersion == "" {
			return fmt.Errorf("a bookmark of %s has no resourceVersion", w.Path)
		}
		w.version = m.Metadata.ResourceVersion
	case "":
		return fmt.Errorf("a change of %s has no type", w.Path)
	case "ERROR":
		var s struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(e.Object, &s); err != nil || s.Code == http.StatusGone {
			return errGone
		}
		return &Refused{s.Code, s.Message, w.Path}
	}
	return nil // a type of change that is not known yet changes nothing
}
