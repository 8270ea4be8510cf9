package importer

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"roundhouse/configs"
)

// maxSource bounds what is read of a file.
const maxSource = configs.MaxFileSize

// Options are what a source does not say.
type Options struct {
	// Env looks up the variables of a compose file. Nil: none is set.
	Env func(string) (string, bool)
	// Read reads a file that the source names, relative to its own folder: the
	// .env beside a compose file, the haproxy.cfg that it mounts. Nil: none is
	// read.
	Read func(path string) ([]byte, error)
	// Image runs a `vllm serve` command line in containers of this image.
	// Empty: our own engine serves the model.
	Image string
}

// Result is what came of an import.
type Result struct {
	HCL   []byte
	Notes []string // what changed or was not carried over, as in the comments
}

// Import reads the text of a file; its kind follows from name and text.
func Import(name string, src []byte, o Options) (*Result, error) {
	if len(src) > maxSource {
		return nil, fmt.Errorf("%s is larger than %s, the most that is read", name, configs.Size(maxSource))
	}
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	if o.Read == nil {
		o.Read = func(path string) ([]byte, error) { return nil, errors.New("not read") }
	}
	p := &plan{source: filepath.Base(name)}
	var err error
	switch kindOf(name, string(src)) {
	case "compose":
		err = p.compose(name, src, o)
	case "haproxy":
		err = p.haproxy(string(src))
	case "nginx":
		err = p.nginx(string(src))
	default:
		return nil, fmt.Errorf("%s is neither a compose file (services:), nor an haproxy.cfg (backend, listen), nor an nginx configuration (upstream)", name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p.result()
}

// Command reads a `vllm serve` command line.
func Command(args []string, o Options) (*Result, error) {
	p := &plan{source: "a vllm command line"}
	if err := p.command(args, o); err != nil {
		return nil, err
	}
	return p.result()
}

var (
	composeMark = regexp.MustCompile(`(?m)^services:`)
	haproxyMark = regexp.MustCompile(`(?m)^(backend|listen|frontend)\s+\S+`)
	nginxMark   = regexp.MustCompile(`(?m)^\s*upstream\s+\S+\s*\{`)
)

func kindOf(name, src string) string {
	ext := strings.ToLower(filepath.Ext(name))
	switch {
	case ext == ".yml" || ext == ".yaml" || composeMark.MatchString(src):
		return "compose"
	case nginxMark.MatchString(src):
		return "nginx"
	case haproxyMark.MatchString(src):
		return "haproxy"
	}
	return ""
}

// result writes the plan and reads it back.
func (p *plan) result() (*Result, error) {
	if len(p.pools) == 0 {
		return nil, errors.New("nothing in it serves a model: no vllm container, no backend server")
	}
	text, err := configs.Format("the import", []byte(p.hcl()))
	if err != nil {
		return nil, fmt.Errorf("what was written cannot be read: %w", err)
	}
	anything := func(string) (string, bool) { return "a value that is set later", true }
	if _, err := configs.Parse("the import", text, anything); err != nil {
		return nil, fmt.Errorf("what was found there does not fit together:\n%w", err)
	}
	return &Result{HCL: text, Notes: p.said()}, nil
}
