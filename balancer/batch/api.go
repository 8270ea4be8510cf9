package batch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Caller is who asks: what it owns nobody else sees, and lines are sent with its key.
type Caller struct {
	Owner string
	Key   string // the key's name; empty: the door asks for none
}

// Endpoints are the paths that a batch may be for.
var Endpoints = []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages", "/v1/rerank", "/v1/score"}

// Serves reports whether a path is of files or batches.
func Serves(path string) bool {
	for _, p := range []string{"/v1/files", "/v1/batches"} {
		if rest, ok := strings.CutPrefix(path, p); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// refusal is an answer of 4xx or 5xx.
type refusal struct {
	status        int
	code, message string
}

// Error implements error.
func (r *refusal) Error() string { return r.message }

func bad(format string, args ...any) error {
	return &refusal{http.StatusBadRequest, "invalid_request", fmt.Sprintf(format, args...)}
}

// ServeHTTP answers one request of a caller's.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request, c Caller) {
	parts := strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, "/v1/"), "/"), "/")
	what := r.Method + " " + parts[0]
	id := ""
	if len(parts) > 1 {
		id, what = parts[1], what+"/id"
	}
	if len(parts) > 2 {
		what += "/" + strings.Join(parts[2:], "/")
	}
	var answer any
	var err error
	switch what {
	case "POST files":
		answer, err = s.upload(w, r, c)
	case "GET files":
		answer, err = s.listFiles(r, c)
	case "GET files/id":
		answer, err = s.oneFile(c, id)
	case "GET files/id/content":
		if err = s.content(w, r, c, id); err == nil {
			return
		}
	case "DELETE files/id":
		answer, err = s.removeFile(c, id)
	case "POST batches":
		answer, err = s.create(r, c)
	case "GET batches":
		answer, err = s.listBatches(r, c)
	case "GET batches/id":
		answer, err = s.oneBatch(c, id)
	case "POST batches/id/cancel":
		answer, err = s.cancel(c, id)
	default:
		err = &refusal{http.StatusNotFound, "not_found", fmt.Sprintf("%s %.200s is not served here", r.Method, r.URL.Path)}
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		s.refuse(w, err, id)
		return
	}
	json.NewEncoder(w).Encode(answer) // a client that has left does not read it
}

// refuse answers with an error in OpenAI's shape.
func (s *Service) refuse(w http.ResponseWriter, err error, id string) {
	var r *refusal
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &r):
	case errors.Is(err, errNotFound):
		r = &refusal{http.StatusNotFound, "not_found", fmt.Sprintf("No such file or batch: %.100s", id)}
	case errors.Is(err, errFull):
		r = &refusal{http.StatusRequestEntityTooLarge, "no_room", errFull.Error() + ": a file may have " + strconv.FormatInt(s.limits.File, 10) + " bytes, all together " + strconv.FormatInt(s.limits.Storage, 10) + "; delete some, or wait until they expire"}
	case errors.As(err, &long):
		r = &refusal{http.StatusRequestEntityTooLarge, "file_too_long", fmt.Sprintf("the file is longer than %d bytes (door.batches.file)", s.limits.File)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		r = &refusal{http.StatusBadRequest, "invalid_request", "the request ended before it was whole"}
	default:
		s.log.Error("files and batches: a request failed", "error", err.Error())
		r = &refusal{http.StatusInternalServerError, "internal", "the door could not read or write its folder of batches"}
	}
	typ := "invalid_request_error"
	if r.status >= 500 {
		typ = "api_error"
	}
	w.WriteHeader(r.status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": r.message, "type": typ, "param": nil, "code": r.code}})
}

// upload takes a file in, as it comes.
func (s *Service) upload(w http.ResponseWriter, r *http.Request, c Caller) (any, error) {
	used, err := s.store.used()
	if err != nil {
		return nil, err
	}
	limit := min(s.limits.File, s.limits.Storage-used)
	if limit <= 0 {
		return nil, errFull
	}
	r.Body = http.MaxBytesReader(w, r.Body, s.limits.File+1<<20)
	form, err := r.MultipartReader()
	if err != nil {
		return nil, bad("the content type must be multipart/form-data with a boundary")
	}
	f := storedFile{File: File{ID: newID("file-"), Object: "file", CreatedAt: s.now().Unix(), Status: "processed"}, Owner: c.Owner}
	keep, came := s.limits.Keep, false
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			s.dropUpload(c, f, came)
			return nil, unwrapForm(err)
		}
		switch name := part.FormName(); name {
		case "file":
			if came {
				s.dropUpload(c, f, came)
				return nil, bad("the field \"file\" is given twice")
			}
			f.Filename, came = part.FileName(), true
			if f, err = s.store.save(f, part, limit); err != nil {
				return nil, unwrapForm(err)
			}
		case "purpose", "expires_after[seconds]", "expires_after[anchor]":
			text, err := io.ReadAll(io.LimitReader(part, 64))
			if err == nil && name == "purpose" {
				f.Purpose = string(text)
			}
			if err == nil && name == "expires_after[seconds]" {
				keep, err = lifetime(string(text), s.limits.Keep)
			}
			if err != nil {
				s.dropUpload(c, f, came)
				return nil, unwrapForm(err)
			}
		}
	}
	if !came {
		return nil, bad("the field \"file\" is missing")
	}
	if f.Purpose != "batch" {
		s.dropUpload(c, f, came)
		return nil, bad("purpose must be batch: this service keeps files for batches alone")
	}
	f.ExpiresAt = known(f.CreatedAt + int64(keep.Seconds()))
	return f.File, s.store.locked(func() error { return write(s.store.meta(f.ID), f) })
}

// dropUpload forgets what came of an upload that is refused.
func (s *Service) dropUpload(c Caller, f storedFile, came bool) {
	if came {
		s.store.remove(c.Owner, f.ID)
	}
}

// unwrapForm tells a form that is not one from a limit or a disk.
func unwrapForm(err error) error {
	var long *http.MaxBytesError
	var r *refusal
	if errors.As(err, &long) || errors.As(err, &r) || errors.Is(err, errFull) || errors.Is(err, os.ErrPermission) {
		return err
	}
	var path *os.PathError
	if errors.As(err, &path) {
		return err
	}
	return bad("the multipart body is malformed, or ended before it was whole")
}

// lifetime reads how long a file is to be kept: an hour to as long as files are.
func lifetime(seconds string, most time.Duration) (time.Duration, error) {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 3600 || n > int64(most.Seconds()) {
		return 0, bad("expires_after.seconds is %.20q; it is from 3600 to %d", seconds, int64(most.Seconds()))
	}
	return time.Duration(n) * time.Second, nil
}

func (s *Service) oneFile(c Caller, id string) (any, error) {
	f, err := s.store.file(c.Owner, id)
	return f.File, err
}

func (s *Service) removeFile(c Caller, id string) (any, error) {
	return map[string]any{"id": id, "object": "file", "deleted": true}, s.store.remove(c.Owner, id)
}

// content gives a file back.
func (s *Service) content(w http.ResponseWriter, r *http.Request, c Caller, id string) error {
	f, err := s.store.file(c.Owner, id)
	if err != nil {
		return err
	}
	in, err := os.Open(s.store.content(id))
	if err != nil {
		return err
	}
	defer in.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Unix(f.CreatedAt, 0), in)
	return nil
}

// page is a part of a list, the newest first unless order is asc.
type page[T any] struct {
	Object  string  `json:"object"`
	Data    []T     `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// pageOf cuts the part of a list out that a request asks for.
func pageOf[T any](r *http.Request, all []T, id func(T) string, usual, most int) (page[T], error) {
	q := r.URL.Query()
	limit := usual
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return page[T]{}, bad("limit is %.20q; it is from 1 to %d", text, most)
		}
		limit = n
	}
	switch q.Get("order") {
	case "", "desc":
		slices.Reverse(all)
	case "asc":
	default:
		return page[T]{}, bad("order is %.20q; it is asc or desc", q.Get("order"))
	}
	if after := q.Get("after"); after != "" {
		at := slices.IndexFunc(all, func(v T) bool { return id(v) == after })
		if at < 0 {
			return page[T]{}, bad("after names nothing in this list")
		}
		all = all[at+1:]
	}
	p := page[T]{Object: "list", Data: []T{}, HasMore: len(all) > limit}
	p.Data = append(p.Data, all[:min(limit, len(all))]...)
	if n := len(p.Data); n > 0 {
		first, last := id(p.Data[0]), id(p.Data[n-1])
		p.FirstID, p.LastID = &first, &last
	}
	return p, nil
}

func (s *Service) listFiles(r *http.Request, c Caller) (any, error) {
	all, err := s.store.files(c.Owner)
	if err != nil {
		return nil, err
	}
	var shown []File
	for _, f := range all {
		if purpose := r.URL.Query().Get("purpose"); purpose == "" || purpose == f.Purpose {
			shown = append(shown, f.File)
		}
	}
	return pageOf(r, shown, func(f File) string { return f.ID }, 10000, 10000)
}

func (s *Service) listBatches(r *http.Request, c Caller) (any, error) {
	all, err := s.store.all()
	if err != nil {
		return nil, err
	}
	var shown []Batch
	for _, b := range all {
		if b.Owner == c.Owner {
			shown = append(shown, b.Batch)
		}
	}
	return pageOf(r, shown, func(b Batch) string { return b.ID }, 20, 100)
}

func (s *Service) oneBatch(c Caller, id string) (any, error) {
	b, err := s.store.one(c.Owner, id)
	return b.Batch, err
}

// mostBatches is how many batches of one owner may be under way.
const mostBatches = 100

// create begins a batch.
func (s *Service) create(r *http.Request, c Caller) (any, error) {
	var asked struct {
		Input    string            `json:"input_file_id"`
		Endpoint string            `json:"endpoint"`
		Window   string            `json:"completion_window"`
		Metadata map[string]string `json:"metadata"`
		Keep     *struct {
			Anchor  string `json:"anchor"`
			Seconds int64  `json:"seconds"`
		} `json:"output_expires_after"`
	}
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 1<<20))
	if err != nil {
		return nil, bad("the request ended before it was whole, or is longer than 1 MiB")
	}
	if err := json.Unmarshal(text, &asked); err != nil {
		return nil, bad("the body is not a batch: %v", err)
	}
	if !slices.Contains(Endpoints, asked.Endpoint) {
		return nil, bad("endpoint is %.80q; it is one of %s", asked.Endpoint, strings.Join(Endpoints, ", "))
	}
	window, err := time.ParseDuration(asked.Window)
	if err != nil || window < time.Minute || window > s.limits.Window {
		return nil, bad("completion_window is %.20q; it is \"24h\", or another time up to %v", asked.Window, s.limits.Window)
	}
	if len(asked.Metadata) > 16 {
		return nil, bad("metadata has %d entries; it has 16 at most", len(asked.Metadata))
	}
	if _, err := s.store.file(c.Owner, asked.Input); err != nil {
		return nil, bad("input_file_id: there is no file %.80q", asked.Input)
	}
	keep := s.limits.Keep
	if asked.Keep != nil {
		if keep, err = lifetime(strconv.FormatInt(asked.Keep.Seconds, 10), s.limits.Keep); err != nil {
			return nil, err
		}
	}
	now := s.now().Unix()
	b := storedBatch{Owner: c.Owner, Key: c.Key, Output: newID("file-"), Failures: newID("file-"), KeepFor: int64(keep.Seconds()), Batch: Batch{
		ID: newID("batch_"), Object: "batch", Endpoint: asked.Endpoint, InputFileID: asked.Input, CompletionWindow: asked.Window,
		Status: validating, CreatedAt: now, ExpiresAt: known(now + int64(window.Seconds())), Metadata: asked.Metadata,
	}}
	err = s.store.locked(func() error {
		all, err := s.store.all()
		if err != nil {
			return err
		}
		live := 0
		for _, o := range all {
			if o.Owner == c.Owner && !o.over() {
				live++
			}
		}
		if live >= mostBatches {
			return &refusal{http.StatusTooManyRequests, "too_many_batches", fmt.Sprintf("%d batches are under way; wait until one ends, or cancel one", live)}
		}
		return write(s.store.batch(b.ID), b)
	})
	s.look()
	return b.Batch, err
}

// cancel asks for a batch's end: lines that are under way are answered, none follows.
func (s *Service) cancel(c Caller, id string) (any, error) {
	if _, err := s.store.one(c.Owner, id); err != nil {
		return nil, err
	}
	b, err := s.store.update(id, func(b *storedBatch) error {
		if b.over() || b.Status == finalizing {
			return &refusal{http.StatusConflict, "batch_over", "the batch is " + b.Status + " and cannot be cancelled"}
		}
		if b.Status != cancelling {
			b.Status, b.CancellingAt = cancelling, known(s.now().Unix())
		}
		return nil
	})
	if err == nil {
		s.ended.Store(id, true)
	}
	s.look()
	return b.Batch, err
}
