package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"roundhouse/configs"
)

// LabelInstance is the label that says whose container it is.
const LabelInstance = "roundhouse.instance"

// Policy is what may be asked of the engine.
type Policy struct {
	Instance     string   // the value of LabelInstance
	Images       []string // that containers may be made of, and that may be pulled
	Volumes      []string // "source:target[:mode]", to the letter
	Networks     []string
	NetworkModes []string // beside none and bridge
	IPC          []string // beside private, shareable and none
	Takeover     []string // containers without our label that may be stopped and removed
}

// PolicyOf reads the policy off a configuration: its docker pools are what may be
// run. What services of a Swarm take is not on the list.
func PolicyOf(cfg *configs.Config, instance string) *Policy {
	p := &Policy{Instance: instance}
	for _, pool := range cfg.Pools {
		if pool.Driver != "docker" {
			continue
		}
		c := pool.Container
		p.Images = append(p.Images, c.Image)
		p.Volumes = append(p.Volumes, c.Volumes...)
		p.Networks = append(p.Networks, c.Networks...)
		p.NetworkModes = append(p.NetworkModes, c.NetworkMode)
		p.IPC = append(p.IPC, c.IPC)
		for _, w := range pool.Workers {
			if w.Takeover != "" {
				p.Takeover = append(p.Takeover, w.Takeover)
			}
		}
	}
	notEmpty := func(list []string) []string {
		return slices.DeleteFunc(list, func(s string) bool { return s == "" })
	}
	p.NetworkModes, p.IPC = notEmpty(p.NetworkModes), notEmpty(p.IPC)
	return p
}

// Guard is the handler that listens in the socket's place.
type Guard struct {
	policy func() *Policy
	engine *http.Client
	proxy  *httputil.ReverseProxy
	log    *slog.Logger
}

// New makes a guard before the engine that listens on a unix socket. The policy
// is asked for at every request, since a configuration changes while it runs.
func New(socket string, policy func() *Policy, log *slog.Logger) *Guard {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "unix", socket)
	}}
	g := &Guard{policy: policy, engine: &http.Client{Transport: transport}, log: log}
	g.proxy = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "docker"})
			r.Out.Header.Del("Upgrade") // nothing here is hijacked
			r.Out.Header.Del("Connection")
		},
	}
	return g
}

// endpoint is one thing that may be asked.
type endpoint struct {
	method string
	path   *regexp.Regexp // its first group, where there is one, is a container
	check  func(g *Guard, r *http.Request, container string) error
}

var version = regexp.MustCompile(`^/v1\.[0-9]{1,3}(/|$)`)

func endpoints() []endpoint {
	at := func(method, path string, check func(*Guard, *http.Request, string) error) endpoint {
		return endpoint{method, regexp.MustCompile("^" + path + "$"), check}
	}
	const id = `([a-zA-Z0-9][a-zA-Z0-9_.-]*)`
	ours := (*Guard).ours
	return []endpoint{
		at("HEAD", "/_ping", nil), at("GET", "/_ping", nil), at("GET", "/version", nil), at("GET", "/info", nil),
		at("GET", "/events", nil), at("GET", "/containers/json", nil), at("GET", "/networks", nil),
		at("GET", "/images/([a-zA-Z0-9][a-zA-Z0-9_./:@-]*)/json", nil),
		at("POST", "/images/create", (*Guard).pull),
		at("POST", "/containers/create", (*Guard).createBody),
		at("GET", "/containers/"+id+"/(?:json|logs|stats|top)", ours),
		at("POST", "/containers/"+id+"/update", (*Guard).updateBody),
		at("POST", "/containers/"+id+"/(?:start|stop|kill|wait|rename|restart)", ours),
		at("DELETE", "/containers/"+id, ours),
	}
}

func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := g.allow(r); err != nil {
		g.log.Warn("refused", "method", r.Method, "path", r.URL.Path, "why", err)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": "roundhouse docker-guard: " + err.Error()}) // the asker may be gone
		return
	}
	g.proxy.ServeHTTP(w, r)
}

// allow says why a request may not pass. It may put a new body in.
func (g *Guard) allow(r *http.Request) error {
	if r.URL.EscapedPath() != r.URL.Path || strings.Contains(r.URL.Path, "//") || strings.Contains(r.URL.Path, "..") {
		return fmt.Errorf("a path that is not plain")
	}
	path := r.URL.Path
	if m := version.FindString(path); m != "" {
		path = "/" + strings.TrimPrefix(path, m)
	}
	for _, e := range endpoints() {
		m := e.path.FindStringSubmatch(path)
		if m == nil || e.method != r.Method {
			continue
		}
		if e.check == nil {
			return g.noBody(r)
		}
		container := ""
		if len(m) > 1 {
			container = m[1]
		}
		return e.check(g, r, container)
	}
	return fmt.Errorf("%s %s is not on the list", r.Method, path)
}

// noBody drops what comes with a request that takes no body.
func (g *Guard) noBody(r *http.Request) error {
	r.Body, r.ContentLength = http.NoBody, 0
	return nil
}

// ours says whether a container is this instance's, or to be taken over.
func (g *Guard) ours(r *http.Request, container string) error {
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/containers/"+container+"/json", nil)
	if err != nil {
		return err
	}
	res, err := g.engine.Do(req)
	if err != nil {
		return fmt.Errorf("the engine does not answer: %w", err)
	}
	defer res.Body.Close()
	var about struct {
		Name   string
		Config struct{ Labels map[string]string }
	}
	switch {
	case res.StatusCode == http.StatusNotFound:
		return g.noBody(r) // the engine says so itself
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("the engine says %s of %s", res.Status, container)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 8<<20)).Decode(&about); err != nil {
		return fmt.Errorf("the engine's answer about %s: %w", container, err)
	}
	policy := g.policy()
	if about.Config.Labels[LabelInstance] != policy.Instance && !slices.Contains(policy.Takeover, strings.TrimPrefix(about.Name, "/")) {
		return fmt.Errorf("%s is not a container of %s", container, policy.Instance)
	}
	return g.noBody(r)
}

// pull lets the configuration's images be fetched.
func (g *Guard) pull(r *http.Request, _ string) error {
	q := r.URL.Query()
	name := q.Get("fromImage")
	if tag := q.Get("tag"); tag != "" {
		name += ":" + tag
	}
	for key := range q {
		if key != "fromImage" && key != "tag" && key != "platform" {
			return fmt.Errorf("a pull with %s", key)
		}
	}
	if !slices.Contains(g.policy().Images, name) {
		return fmt.Errorf("%q is no image of the configuration", name)
	}
	return g.noBody(r)
}

// createBody puts the checked body in the place of the one that came.
func (g *Guard) createBody(r *http.Request, _ string) error {
	return g.body(r, g.policy().create)
}

// updateBody lets a container lose its restart policy, which a takeover takes,
// and nothing else.
func (g *Guard) updateBody(r *http.Request, container string) error {
	if err := g.body(r, update); err != nil {
		return err
	}
	body, length := r.Body, r.ContentLength
	err := g.ours(r, container)
	r.Body, r.ContentLength = body, length
	return err
}

// body reads a request's body and puts in its place what check made of it.
func (g *Guard) body(r *http.Request, check func([]byte) ([]byte, error)) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return err
	}
	if len(body) > maxBody {
		return fmt.Errorf("a body of more than %d bytes", maxBody)
	}
	checked, err := check(body)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(checked)), int64(len(checked))
	r.TransferEncoding = nil
	r.Header.Del("Content-Length")
	r.Header.Set("Content-Type", "application/json")
	return nil
}
