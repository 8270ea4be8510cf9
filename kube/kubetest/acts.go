package kubetest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// The collections of those who rotate.
const (
	Leases  = "/apis/coordination.k8s.io/v1/namespaces/here/leases"
	Budgets = "/apis/policy/v1/namespaces/here/poddisruptionbudgets"
)

// refusal is an answer that is an error.
type refusal struct {
	status int
	text   string
}

// write does what changes an object: an eviction, a merge patch, a POST of a new object, and
// a PUT with the version that was read. s.mu is held.
func (s *Server) write(r *http.Request) (any, *refusal) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, err.Error()}
	}
	var body Object
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, &refusal{http.StatusBadRequest, err.Error()}
	}
	path := r.URL.Path
	if pod, ok := strings.CutSuffix(path, "/eviction"); ok {
		return s.evict(pod, body)
	}
	if strings.HasSuffix(path, "/selfsubjectaccessreviews") {
		spec, _ := body["spec"].(Object)
		of, _ := spec["resourceAttributes"].(Object)
		what := strings.TrimSuffix(fmt.Sprint(of["verb"], " ", of["resource"], "/", of["subresource"]), "/")
		return Object{"status": Object{"allowed": !slices.Contains(s.Denied, what)}}, nil
	}
	if r.Method == http.MethodPost {
		m, _ := body["metadata"].(Object)
		if _, _, there := s.find(path + "/" + fmt.Sprint(m["name"])); there {
			return nil, &refusal{http.StatusConflict, "already exists"}
		}
		s.put(path, fmt.Sprint("uid-", m["name"]), body)
		return body, nil
	}
	collection, uid, there := s.find(path)
	if !there {
		return nil, &refusal{http.StatusNotFound, "not found"}
	}
	was := s.objects[collection][uid]
	old, _ := was["metadata"].(Object)
	m, _ := body["metadata"].(Object)
	for _, same := range []string{"uid", "resourceVersion"} {
		if got, given := m[same]; given && got != old[same] {
			return nil, &refusal{http.StatusConflict, "another " + same}
		}
	}
	if r.Method == http.MethodPut {
		s.put(collection, uid, body)
		return body, nil
	}
	if kind := r.Header.Get("Content-Type"); kind != "application/merge-patch+json" {
		return nil, &refusal{http.StatusUnsupportedMediaType, kind}
	}
	next := merged(was, body).(Object)
	s.put(collection, uid, next)
	return next, nil
}

// evict takes a pod out, if Budget says so.
func (s *Server) evict(path string, body Object) (any, *refusal) {
	collection, uid, there := s.find(path)
	options, _ := body["deleteOptions"].(Object)
	want, _ := options["preconditions"].(Object)
	switch {
	case !there:
		return nil, &refusal{http.StatusNotFound, "not found"}
	case want["uid"] != uid:
		return nil, &refusal{http.StatusConflict, "another uid"}
	case s.Budget != 0:
		return nil, &refusal{s.Budget, "Cannot evict pod as it would violate the pod's disruption budget."}
	}
	if options["dryRun"] == nil && s.Evicted != nil {
		go s.Evicted(collection, uid)
	}
	return Object{"kind": "Status", "status": "Success"}, nil
}

// find is the collection and UID of the object at a path.
func (s *Server) find(path string) (collection, uid string, there bool) {
	at := strings.LastIndexByte(path, '/')
	collection = path[:at]
	for uid, o := range s.objects[collection] {
		if m, _ := o["metadata"].(Object); m["name"] == path[at+1:] {
			return collection, uid, true
		}
	}
	return "", "", false
}

// merged is a value with a JSON merge patch applied. Neither is changed.
func merged(was, patch any) any {
	p, ok := patch.(Object)
	if !ok {
		return patch
	}
	old, _ := was.(Object)
	next := maps.Clone(old)
	if next == nil {
		next = Object{}
	}
	for _, k := range slices.Sorted(maps.Keys(p)) {
		if p[k] == nil {
			delete(next, k)
			continue
		}
		next[k] = merged(next[k], p[k])
	}
	return next
}

// Get is a copy of an object; nil: it is not there.
func (s *Server) Get(collection, uid string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[collection][uid]
	if !ok {
		return nil
	}
	return merged(o, Object{}).(Object)
}
