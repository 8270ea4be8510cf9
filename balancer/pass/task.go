package pass

import (
	"bytes"
	"slices"
	"strings"

	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// Any is the task of a pool that takes all paths.
const Any = "any"

// The prefixes of a film's paths, and the path that a websocket is opened at.
const (
	videos       = "/v1/videos"
	videoPrefix  = videos + "/"
	RealtimePath = "/v1/realtime"
)

// Job says what a path has to do with a job that goes on after its answer.
type Job byte

// What a path may have to do with a job.
const (
	None  Job = iota
	Makes     // its answer names a new job
	Of        // it asks for a job that is there, at that job's worker alone
)

// Path is what a path that passes through is for.
type Path struct {
	Methods []string
	Tasks   []string // of the pools that serve it
	Job     Job
	ID      string // of the job that it asks for
	Socket  bool   // it opens a websocket
}

var (
	post     = []string{"POST"}
	pictures = []string{"image", Any}
)

// paths are the paths without an id.
var paths = map[string]Path{
	"/v1/audio/speech":         {Methods: post, Tasks: []string{"speech", Any}},
	"/v1/audio/voices":         {Methods: []string{"GET"}, Tasks: []string{"speech", Any}},
	"/v1/audio/transcriptions": {Methods: post, Tasks: []string{"transcribe", Any}},
	"/v1/audio/translations":   {Methods: post, Tasks: []string{"transcribe", Any}},
	"/v1/images/generations":   {Methods: post, Tasks: pictures},
	"/v1/images/edits":         {Methods: post, Tasks: pictures},
	"/v1/images/variations":    {Methods: post, Tasks: pictures},
	"/v1/moderations":          {Methods: post, Tasks: []string{"score", Any}},
	videos:                     {Methods: post, Tasks: pictures, Job: Makes},
	RealtimePath:               {Methods: []string{"GET"}, Tasks: []string{"transcribe", "speech", Any}, Socket: true},
}

// Find looks a path up, byte for byte. The second result reports whether it is one
// that passes through.
func Find(path string) (Path, bool) {
	if p, ok := paths[path]; ok {
		return p, true
	}
	rest, ok := strings.CutPrefix(path, videoPrefix)
	if !ok {
		return Path{}, false
	}
	id, act, cut := strings.Cut(rest, "/")
	p := Path{Tasks: pictures, Job: Of, ID: id}
	switch {
	case !surface.Plain(id, 128):
		return Path{}, false
	case !cut:
		p.Methods = []string{"GET", "DELETE"}
	case act == "content":
		p.Methods = []string{"GET"}
	case act == "remix":
		p.Methods = post
	default:
		return Path{}, false
	}
	return p, true
}

// Serves reports whether a pool of that task serves the path.
func (p *Path) Serves(task string) bool { return task != "" && slices.Contains(p.Tasks, task) }

// Takes reports whether the path takes the method.
func (p *Path) Takes(method string) bool { return slices.Contains(p.Methods, method) }

// Line is what the first bytes of a request say of its path.
type Line struct {
	Path string // without its query; empty while it has not come whole
	More bool   // it has not come whole, and may become a path that matters
}

// mostLine is how many bytes are looked at for a path.
const mostLine = 512

// ReadLine reads the path out of a request's first bytes, by nothing but its place:
// what is odd about the line is for the server to find that gets it.
func ReadLine(b []byte) Line {
	line, _, whole := bytes.Cut(b[:min(len(b), mostLine)], []byte("\r\n"))
	whole = whole || len(b) >= mostLine
	_, target, spaced := bytes.Cut(line, []byte(" "))
	if !spaced {
		return Line{More: !whole && len(line) < 16}
	}
	if len(target) > 0 && target[0] != '/' {
		url, _, ended := bytes.Cut(target, []byte(" "))
		if !ended && !whole {
			return Line{More: true}
		}
		if _, path, ok := wire.AbsoluteForm(url); ok {
			target = append(path[:len(path):len(path)], ' ')
		}
	}
	end := bytes.IndexAny(target, " ?")
	if end < 0 {
		if whole {
			return Line{}
		}
		n := min(len(target), len("/v1/"))
		return Line{More: string(target[:n]) == "/v1/"[:n]}
	}
	return Line{Path: string(target[:end])}
}
