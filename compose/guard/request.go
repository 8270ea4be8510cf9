package guard

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"roundhouse/supervisor/moby"
)

// order is what the engine is to be asked: a request of our own making.
type order struct {
	path   string // without the version
	query  url.Values
	header http.Header
	body   any // nil: none
}

// endpoint is one thing that may be asked.
type endpoint struct {
	method string
	path   *regexp.Regexp // its first group, where there is one, is what it is about
	make   func(g *Guard, r *http.Request, about string) (*order, error)
}

var (
	version = regexp.MustCompile(`^/v1\.[0-9]{2}(/|$)`)
	// identity is how an engine names a container for good.
	identity = regexp.MustCompile(`^[0-9a-f]{64}$`)

	number  = regexp.MustCompile(`^-?[0-9]{1,18}$`)
	truth   = regexp.MustCompile(`^(?i:0|1|true|false)$`)
	moment  = regexp.MustCompile(`^[0-9A-Za-z:.+-]{1,40}$`)
	anyText = regexp.MustCompile(``) // whoever takes it reads it
)

// queries are the parameters that an endpoint takes, and how each looks.
type queries map[string]*regexp.Regexp

var logs = queries{
	"follow": truth, "stdout": truth, "stderr": truth, "timestamps": truth, "details": truth,
	"since": moment, "until": moment, "tail": regexp.MustCompile(`^(all|[0-9]{1,9})$`),
}

func endpoints() []endpoint {
	at := func(method, path string, make func(*Guard, *http.Request, string) (*order, error)) endpoint {
		return endpoint{method, regexp.MustCompile("^" + path + "$"), make}
	}
	const id = `([a-zA-Z0-9][a-zA-Z0-9_.-]*)`
	return []endpoint{
		at("HEAD", "/_ping", plain), at("GET", "/_ping", plain), at("GET", "/version", plain), at("GET", "/info", plain),
		at("GET", "/events", events), at("GET", "/containers/json", list),
		at("GET", "/images/([a-zA-Z0-9][a-zA-Z0-9_./:@-]*)/json", look),
		at("POST", "/images/create", pull),
		at("POST", "/containers/create", create),
		at("GET", "/containers/"+id+"/json", of("/json", queries{"size": truth}, true)),
		at("GET", "/containers/"+id+"/logs", of("/logs", logs, true)),
		at("GET", "/containers/"+id+"/stats", of("/stats", queries{"stream": truth, "one-shot": truth}, true)),
		at("POST", "/containers/"+id+"/start", of("/start", nil, false)),
		at("POST", "/containers/"+id+"/stop", of("/stop", queries{"t": number}, true)),
		at("POST", "/containers/"+id+"/update", update),
		at("POST", "/containers/"+id+"/rename", rename),
		at("DELETE", "/containers/"+id, of("", queries{"force": truth, "v": truth}, false)),
	}
}

// allow says what the engine is to be asked for a request, and in which version, or why
// it may not pass.
func (g *Guard) allow(r *http.Request) (string, *order, error) {
	if r.URL.EscapedPath() != r.URL.Path || strings.Contains(r.URL.Path, "//") || strings.Contains(r.URL.Path, "..") {
		return "", nil, fmt.Errorf("a path that is not plain")
	}
	path := r.URL.Path
	spoken := strings.TrimSuffix(version.FindString(path), "/")
	path = strings.TrimPrefix(path, spoken)
	for _, e := range endpoints() {
		m := e.path.FindStringSubmatch(path)
		if m == nil || e.method != r.Method {
			continue
		}
		about := path
		if len(m) > 1 {
			about = m[1]
		}
		o, err := e.make(g, r, about)
		return spoken, o, err
	}
	return "", nil, fmt.Errorf("%s %s is not on the list", r.Method, path)
}

// onlyQuery refuses parameters that are not among the known, that are there twice, or
// that do not look as they should.
func onlyQuery(r *http.Request, known queries) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fmt.Errorf("the query cannot be read: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		switch look, ok := known[name]; {
		case !ok:
			return fmt.Errorf("the parameter %q may not be set", name)
		case len(q[name]) != 1:
			return fmt.Errorf("the parameter %q is there twice", name)
		case !look.MatchString(q[name][0]):
			return fmt.Errorf("the parameter %s=%q is not one that is known", name, q[name][0])
		}
	}
	return nil
}

// plain passes what asks for nothing but itself.
func plain(_ *Guard, r *http.Request, path string) (*order, error) {
	return &order{path: path}, onlyQuery(r, nil)
}

// filtered reads the filters of a request by the engine's own rules.
func filtered(r *http.Request) (url.Values, filters.Args, error) {
	q := r.URL.Query()
	args, err := filters.FromJSON(q.Get("filters"))
	if err != nil {
		return nil, args, fmt.Errorf("the filters cannot be read: %w", err)
	}
	return q, args, nil
}

// events passes the stream of events.
func events(_ *Guard, r *http.Request, _ string) (*order, error) {
	if err := onlyQuery(r, queries{"since": moment, "until": moment, "filters": anyText}); err != nil {
		return nil, err
	}
	q, args, err := filtered(r)
	if err != nil {
		return nil, err
	}
	return &order{path: "/events", query: q}, refilter(q, args)
}

// list lists this instance's containers and no other's.
func list(g *Guard, r *http.Request, _ string) (*order, error) {
	if err := onlyQuery(r, queries{"all": truth, "limit": number, "size": truth, "filters": anyText}); err != nil {
		return nil, err
	}
	q, args, err := filtered(r)
	if err != nil {
		return nil, err
	}
	args.Add("label", moby.LabelInstance+"="+g.policy().Instance)
	return &order{path: "/containers/json", query: q}, refilter(q, args)
}

func refilter(q url.Values, args filters.Args) error {
	q.Del("filters")
	if args.Len() == 0 {
		return nil
	}
	text, err := filters.ToJSON(args)
	q.Set("filters", text)
	return err
}

// found is a container that the engine has, as far as the guard must know it.
type found struct {
	ID     string `json:"Id"`
	Name   string
	Image  string
	Config struct{ Labels map[string]string }
}

// find finds a container that may be touched: this instance's own or, where strangers
// may be meant, one that the configuration takes over. The engine is told its identity
// from then on: its name may be another's by the time. An absent one is asked for
// by the name, for the engine to say so.
func (g *Guard) find(r *http.Request, name string, strangers bool) (id string, c found, err error) {
	there, err := g.ask(r.Context(), "/containers/"+name+"/json", &c)
	if err != nil {
		return "", c, err
	}
	if !there {
		return strings.Repeat("0", 64), c, nil // as a name it might be there by now
	}
	if !identity.MatchString(c.ID) {
		return "", c, fmt.Errorf("the engine calls %s %q, which is no container's identity", name, c.ID)
	}
	policy := g.policy()
	owner := c.Config.Labels[moby.LabelInstance]
	switch taken := slices.Contains(policy.takeover, strings.TrimPrefix(c.Name, "/")); {
	case owner == policy.Instance:
		g.meet(c.Config.Labels[moby.LabelPool], c.Image)
	case owner != "" || !taken:
		return "", c, fmt.Errorf("%s is not a container of %s", name, policy.Instance)
	case !strangers:
		return "", c, fmt.Errorf("%s is taken over: it may be stopped and renamed, and nothing else", name)
	}
	return c.ID, c, nil
}

// of passes what is asked of one container.
func of(what string, known queries, strangers bool) func(*Guard, *http.Request, string) (*order, error) {
	return func(g *Guard, r *http.Request, name string) (*order, error) {
		if err := onlyQuery(r, known); err != nil {
			return nil, err
		}
		id, _, err := g.find(r, name, strangers)
		return &order{path: "/containers/" + id + what, query: r.URL.Query()}, err
	}
}

// keptName is added to the name of a container that was taken over.
const keptName = "-before-roundhouse"

// rename lets a container that was taken over give its name to its worker's own.
func rename(g *Guard, r *http.Request, name string) (*order, error) {
	if err := onlyQuery(r, queries{"name": anyText}); err != nil {
		return nil, err
	}
	id, c, err := g.find(r, name, true)
	if err != nil {
		return nil, err
	}
	kept := strings.TrimPrefix(c.Name, "/") + keptName
	if to := r.URL.Query().Get("name"); c.ID != "" && (c.Config.Labels[moby.LabelInstance] != "" || to != kept) {
		return nil, fmt.Errorf("%s may not be renamed to %q", name, to)
	}
	return &order{path: "/containers/" + id + "/rename", query: url.Values{"name": {kept}}}, nil
}

// update lets a container lose its restart policy, which a takeover takes, and nothing
// else.
func update(g *Guard, r *http.Request, name string) (*order, error) {
	if err := onlyQuery(r, nil); err != nil {
		return nil, err
	}
	var asked container.UpdateConfig
	if err := decodeBody(r, &asked); err != nil {
		return nil, err
	}
	if err := noRestart(asked.RestartPolicy); err != nil {
		return nil, err
	}
	asked.RestartPolicy = container.RestartPolicy{}
	if err := unset("", asked); err != nil {
		return nil, err
	}
	id, _, err := g.find(r, name, true)
	return &order{path: "/containers/" + id + "/update", body: container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled}}}, err
}
