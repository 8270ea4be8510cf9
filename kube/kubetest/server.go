package kubetest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The collections that the tests use, in the namespace "here".
const (
	Pods           = "/api/v1/namespaces/here/pods"
	InferencePools = "/apis/inference.networking.k8s.io/v1/namespaces/here/inferencepools"
)

// Object is an object as an API server writes it.
type Object = map[string]any

// Server answers as an API server does: lists in pages, watches from a version on,
// selectors by equality, and 410 for versions that it has forgotten. What is set to have
// it fail is set by With.
type Server struct {
	*httptest.Server
	Folder string // of an account: token, ca.crt and namespace

	Refuse  int    // answers every request with this status, if it is set
	Token   string // the one that it asks for
	Page    int    // how many objects a page has; 0: all
	Mute    bool   // watches say nothing
	Garbage string // answers this to all
	Oldest  int    // the first version that a watch may begin behind
	Version int
	Budget  int      // answers evictions with this status; 0: they are granted
	Denied  []string // rights that the account lacks, as "verb resource"
	// Evicted is told of a pod that was evicted: what then becomes of it, its owner and its
	// kubelet would do.
	Evicted func(collection, uid string)

	t        testing.TB
	mu       sync.Mutex
	objects  map[string]map[string]Object // by collection and UID
	events   []event
	wake     chan struct{}
	cut      chan struct{} // closed: all watches end
	requests []Request
}

type event struct {
	collection string // empty: of all
	object     Object // nil: it says something else
	version    int
	text       string
}

// Request is a request that was answered, by the words of an account's rights.
type Request struct{ Verb, Group, Resource, URL string }

// New starts a server.
func New(t testing.TB) *Server {
	s := &Server{Folder: t.TempDir(), Token: "one", Version: 10, t: t, objects: map[string]map[string]Object{}, wake: make(chan struct{}), cut: make(chan struct{})}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, text := range map[string]string{"token": "one\n", "namespace": "here", "ca.crt": string(ca)} {
		if err := os.WriteFile(filepath.Join(s.Folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Pod is a pod with the label app=vllm; more goes into its metadata.
func Pod(name, ip string, ready bool, more ...Object) Object {
	status := "False"
	if ready {
		status = "True"
	}
	m := Object{"name": name, "creationTimestamp": "2026-11-22T10:00:00Z", "labels": Object{"app": "vllm"}}
	for _, add := range more {
		maps.Copy(m, add)
	}
	return Object{"metadata": m, "status": Object{"phase": "Running", "podIP": ip, "conditions": []any{Object{"type": "Ready", "status": status}}}}
}

// Change puts an object, or takes it out where it is nil, and tells those who watch.
func (s *Server) Change(collection, uid string, object Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(collection, uid, object)
}

// put is Change. s.mu is held.
func (s *Server) put(collection, uid string, object Object) {
	all := s.objects[collection]
	if all == nil {
		all = map[string]Object{}
		s.objects[collection] = all
	}
	s.Version++
	kind, was := "ADDED", all[uid]
	if was != nil {
		kind = "MODIFIED"
	}
	if object == nil {
		kind, object = "DELETED", merged(was, Object{"metadata": Object{"uid": uid}}).(Object)
		delete(all, uid)
	} else {
		all[uid] = object
	}
	m := object["metadata"].(Object)
	m["uid"], m["resourceVersion"] = uid, strconv.Itoa(s.Version)
	text, err := json.Marshal(Object{"type": kind, "object": object})
	if err != nil {
		s.t.Error(err)
	}
	s.say(event{collection, object, s.Version, string(text)})
}

// Say tells all who watch something.
func (s *Server) Say(text string) { s.With(func() { s.say(event{text: text, version: 1 << 30}) }) }

// say tells those who watch something. s.mu is held.
func (s *Server) say(e event) {
	s.events = append(s.events, e)
	close(s.wake)
	s.wake = make(chan struct{})
}

// End ends all watches.
func (s *Server) End() {
	s.With(func() {
		close(s.cut)
		s.cut = make(chan struct{})
	})
}

// With changes how the server is.
func (s *Server) With(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Asked is what has been asked so far.
func (s *Server) Asked() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, requestOf(r))
	refuse, garbage := s.Refuse, s.Garbage
	if r.Header.Get("Authorization") != "Bearer "+s.Token {
		refuse = http.StatusUnauthorized
	}
	s.mu.Unlock()
	switch {
	case refuse != 0:
		w.WriteHeader(refuse)
		fmt.Fprintf(w, `{"kind":"Status","message":"told to","code":%d}`, refuse)
	case garbage != "":
		fmt.Fprint(w, garbage)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	case r.Method != http.MethodGet:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reply(w)(s.write(r))
	case named(r):
		s.mu.Lock()
		defer s.mu.Unlock()
		collection, uid, there := s.find(r.URL.Path)
		if !there {
			s.reply(w)(nil, &refusal{http.StatusNotFound, "not found"})
			return
		}
		s.reply(w)(s.objects[collection][uid], nil)
	default:
		s.list(w, r)
	}
}

// reply writes an answer or an error.
func (s *Server) reply(w http.ResponseWriter) func(any, *refusal) {
	return func(answer any, no *refusal) {
		if no != nil {
			w.WriteHeader(no.status)
			answer = Object{"kind": "Status", "message": no.text, "code": no.status}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			s.t.Log(err) // the asker is gone
		}
	}
}

// parts are the words of a request's path, behind its API group.
func parts(r *http.Request) (group string, words []string) {
	words = strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if words[0] == "apis" && len(words) > 2 {
		return words[1], words[1:]
	}
	return "", words
}

// named reports whether a request is about one object by its name.
func named(r *http.Request) bool {
	_, words := parts(r)
	return len(words) == 6 // api, version, namespaces, name, resource, name
}

// requestOf names a request by what it takes to be allowed it.
func requestOf(r *http.Request) Request {
	group, words := parts(r)
	q := Request{Verb: strings.ToLower(r.Method), Group: group, URL: r.URL.String()}
	if len(words) > 4 {
		q.Resource = words[4]
	}
	if len(words) > 6 {
		q.Resource += "/" + words[6] // api, version, namespaces, name, resource, name, subresource
	}
	if verb := map[string]string{"post": "create", "put": "update"}[q.Verb]; verb != "" {
		q.Verb = verb
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		q.Verb = "watch"
	case r.Method == http.MethodGet && len(words) == 5:
		q.Verb = "list"
	}
	return q
}

// selected reports whether a request asks for an object.
func selected(r *http.Request, o Object) bool {
	m, _ := o["metadata"].(Object)
	if name, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="); ok && m["name"] != name {
		return false
	}
	labels, _ := m["labels"].(Object)
	for one := range strings.SplitSeq(r.URL.Query().Get("labelSelector"), ",") {
		if k, v, ok := strings.Cut(one, "="); ok && labels[k] != v {
			return false
		}
	}
	return true
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.objects[r.URL.Path]
	items := []any{}
	for _, uid := range slices.Sorted(maps.Keys(all)) {
		if selected(r, all[uid]) {
			items = append(items, all[uid])
		}
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	meta := Object{"resourceVersion": strconv.Itoa(s.Version)}
	if s.Page > 0 && len(items) > from+s.Page {
		meta["continue"] = strconv.Itoa(from + s.Page)
		items = items[:from+s.Page]
	}
	json.NewEncoder(w).Encode(Object{"metadata": meta, "items": items[min(from, len(items)):]})
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	s.mu.Lock()
	cut, at, old := s.cut, 0, since < s.Oldest
	s.mu.Unlock()
	if old {
		fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}`)
		return
	}
	w.(http.Flusher).Flush()
	for {
		s.mu.Lock()
		wake := s.wake
		var send []string
		for ; at < len(s.events); at++ {
			e := s.events[at]
			if e.version > since && !s.Mute && (e.collection == "" || e.collection == r.URL.Path && selected(r, e.object)) {
				send = append(send, e.text)
			}
		}
		s.mu.Unlock()
		for _, e := range send {
			fmt.Fprintln(w, e)
		}
		w.(http.Flusher).Flush()
		select {
		case <-wake:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}
