package live_test

import (
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
	"roundhouse/live"
	"roundhouse/measure/verdict"
	"roundhouse/supervisor"
)

// schema is what of a schema is looked at here.
type schema struct {
	Ref        string            `yaml:"$ref"`
	Required   []string          `yaml:"required"`
	Properties map[string]schema `yaml:"properties"`
	Additional any               `yaml:"additionalProperties"`
}

// openAPI is the file.
type openAPI struct {
	Paths      map[string]map[string]yaml.Node `yaml:"paths"`
	Components struct {
		Schemas map[string]schema `yaml:"schemas"`
	} `yaml:"components"`
}

const file = "../docs/openapi.yaml"

func readOpenAPI(t *testing.T) (api openAPI, whole any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	return api, whole
}

// TestPaths: every path and method of the file is served, and what is served is in it.
func TestPaths(t *testing.T) {
	api, _ := readOpenAPI(t)
	var told []string
	for path, methods := range api.Paths {
		for method := range methods {
			told = append(told, strings.ToUpper(method)+" "+path)
		}
	}
	served := map[string]bool{"POST /api/code": true, "POST /api/session": true, "POST /api/try/{path}": true} // as control.Guard and TryPath have them
	route := regexp.MustCompile(`"((?:GET|POST|PUT|DELETE) /(?:api|metrics)[^"]*)"`)
	for _, name := range []string{"../supervisor/admin.go", "../balancer/admin.go", "../balancer/control/keyfile/api.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range route.FindAllStringSubmatch(string(text), -1) {
			served[m[1]] = true
		}
	}
	delete(served, "POST "+control.TryPath)
	for _, one := range told {
		if !served[one] {
			t.Errorf("%s tells of %s, which is not served", file, one)
		}
		delete(served, one)
	}
	for one := range served {
		t.Errorf("%s is served, and not told of in %s", one, file)
	}
	guard, err := os.ReadFile("../balancer/control/guard.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{`"/api/code"`, `"/api/session"`} {
		if !strings.Contains(string(guard), path) {
			t.Errorf("the guard serves no %s", path)
		}
	}
}

// TestFields: the file has every field of the answers that Go types make, no other, and
// says which are always there.
func TestFields(t *testing.T) {
	api, _ := readOpenAPI(t)
	types := map[string]any{
		"Hello": live.Hello{}, "State": live.State{}, "Change": live.Change{}, "Figures": live.Figures{}, "OneDoor": live.OneDoor{},
		"LiveRequests": live.LiveRequests{}, "InFlight": control.InFlight{}, "EndedRequests": control.EndedRequests{}, "Ended": control.Ended{},
		"Decisions": control.Decisions{}, "Decision": control.Decision{}, "Candidate": control.Candidate{}, "Sample": live.Sample{},
		"History": live.Past{}, "Event": live.Event{}, "LogLines": live.LogLines{}, "Gap": live.Gap{}, "Bye": live.Bye{},
		"Verdict": verdict.Verdict{}, "Finding": verdict.Finding{}, "Code": control.CodeShown{}, "Session": control.SessionShown{},
		"Workers": control.WorkersShown{}, "Worker": control.WorkerShown{}, "Traffic": control.Traffic{}, "Device": control.Device{},
		"Door": control.DoorShown{}, "Supervisor": control.SupervisorShown{}, "Pools": control.PoolsShown{}, "Pool": control.PoolShown{},
		"Keys": control.KeysShown{}, "Key": control.KeyShown{}, "KeyAdded": control.KeyAdded{}, "KeyRemoved": control.KeyRemoved{},
		"Budget": configs.Budget{}, "BudgetShown": control.BudgetShown{}, "Used": control.Used{}, "Totals": control.Totals{}, "TotalsAck": control.TotalsAck{}, "WorkerTotal": control.WorkerTotal{}, "KeyUse": control.KeyUse{}, "FolderUse": control.FolderUse{}, "BudgetUse": control.BudgetUse{}, "Cached": control.Cached{}, "Usage": control.Usage{}, "UsageRow": control.UsageRow{},
		"Rotation": live.Rotation{}, "Schedule": live.Schedule{}, "RotateCommand": supervisor.RotateCommand{}, "ScheduleCommand": supervisor.ScheduleCommand{}, "ProfileCommand": supervisor.ProfileCommand{}, "ProfiledElsewhere": supervisor.ProfiledElsewhere{}, "FileChanges": supervisor.FileChanges{}, "FileChange": supervisor.FileChange{},
	}
	for name, v := range types {
		s, ok := api.Components.Schemas[name]
		if !ok {
			t.Errorf("%s has no schema %s", file, name)
			continue
		}
		if s.Additional != false {
			t.Errorf("%s takes other fields than it tells", name)
		}
		compare(t, name, s, reflect.TypeOf(v))
	}
}

func compare(t *testing.T, name string, s schema, typ reflect.Type) {
	t.Helper()
	var all, always []string
	for _, f := range reflect.VisibleFields(typ) {
		field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if field == "" || field == "-" {
			continue
		}
		all = append(all, field)
		if !strings.Contains(options, "omitempty") {
			always = append(always, field)
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if p := s.Properties[field]; len(p.Properties) > 0 && inner.Kind() == reflect.Struct {
			compare(t, name+"."+field, p, inner)
		}
	}
	var told []string
	for field := range s.Properties {
		told = append(told, field)
	}
	sort.Strings(all)
	sort.Strings(told)
	if !slices.Equal(all, told) {
		t.Errorf("%s has %v; the file tells %v", name, all, told)
	}
	sort.Strings(always)
	sort.Strings(s.Required)
	if !slices.Equal(always, s.Required) {
		t.Errorf("%s always has %v; the file requires %v", name, always, s.Required)
	}
}

// TestAnswers: what a house that works answers is what the file says, each message of
// the stream as well.
func TestAnswers(t *testing.T) {
	_, whole := readOpenAPI(t)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("file:///openapi", asJSON(t, whole)); err != nil {
		t.Fatal(err)
	}
	check := func(what, name string, data []byte) {
		t.Helper()
		s, err := compiler.Compile("file:///openapi#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
		if err == nil {
			err = s.Validate(v)
		}
		if err != nil {
			t.Errorf("%s is no %s: %v\n%s", what, name, err, data)
		}
	}
	h := newHouse(t, sim.New(sim.Options{Own: true, Words: 3, Modalities: []string{"text", "image"}}), sim.New(sim.Options{Words: 300, Pace: 10_000_000}))
	s := h.tab("?requests=chat&worker=chat/w1&log=door")
	h.chat("first")
	enough, ended, last := make(chan bool), make(chan bool), 1
	go func() {
		defer close(ended)
		for n := 2; ; n++ { // lists of requests and lines of the log come while there are some
			select {
			case <-enough:
				return
			default:
				h.chat(strconv.Itoa(n))
				last = n
			}
		}
	}()
	h.ask("POST", "/api/try/v1/chat/completions", "{}", "X-Roundhouse-Worker", "chat/w1")
	h.ask("POST", "/api/workers/chat/w1/drain", "")
	names := map[string]string{"hello": "Hello", "state": "State", "change": "Change", "requests": "LiveRequests", "sample": "Sample", "event": "Event", "log": "LogLines", "gap": "Gap", "bye": "Bye"}
	seen := map[string]bool{}
	for !seen["hello"] || !seen["state"] || !seen["change"] || !seen["requests"] || !seen["sample"] || !seen["event"] || !seen["log"] {
		m := s.next()
		check("the message "+m.name, names[m.name], m.data)
		seen[m.name] = m.name != "requests" || strings.Contains(string(m.data), `"id"`) || seen[m.name]
	}
	close(enough)
	<-ended
	for path, name := range map[string]string{
		"/api/workers": "Workers", "/api/pools": "Pools", "/api/rotations": "Rotations", "/api/schedule": "Schedules", "/api/version": "Version", "/api/config/changes": "FileChanges",
		"/api/history": "History", "/api/history?range=6h&pool=chat&series=tokens_per_second,ttft_p95_seconds": "History",
		"/api/history?worker=*&pool=chat": "History", "/api/history?worker=chat/w1&points=7": "History", "/api/thresholds": "Thresholds",
		"/api/decisions": "Decisions", "/api/decisions?limit=1&worker=chat/w1": "Decisions", "/api/decisions/" + strconv.Itoa(last): "Decision",
		"/api/requests?ended=1": "EndedRequests", "/api/decisions/none": "Error", "/api/history?range=long": "Error", "/api/history?series=nonsense": "Error",
	} {
		_, text := h.ask("GET", path, "")
		check(path, name, []byte(text))
	}
	_, text := h.ask("GET", "/api/workers", "")
	if w := read[control.WorkersShown](t, []byte(text)).Workers; !slices.Equal(w[0].Modalities, []string{"text", "image"}) || w[1].Modalities != nil {
		t.Errorf("a worker that sees is shown with %q, and one that says nothing with %q", w[0].Modalities, w[1].Modalities)
	}
	for _, path := range []string{"/api/requests", "/api/queue"} {
		_, text := h.ask("GET", path, "")
		for _, f := range read[[]json.RawMessage](t, []byte(text)) {
			check(path, "InFlight", f)
		}
	}
	for _, c := range [][3]string{
		{"/api/workers/chat/w1/undrain", "", "WorkerAnswer"}, {"/api/pools/chat/rotate", `{"dry_run":true}`, "Error"}, {"/api/code", "", "Code"},
		{"/api/schedule", `{"off":true}`, "Schedules"}, {"/api/pools/chat/scale", `{"workers":3}`, "Error"}, {"/api/session", `{"code":"none"}`, "Error"},
	} {
		_, text := h.ask("POST", c[0], c[1])
		check(c[0], c[2], []byte(text))
	}
	_, text = h.ask("POST", "/api/code", "")
	code := read[control.CodeShown](t, []byte(text)).Code
	if status, text := h.ask("POST", "/api/session", `{"code":"`+code+`"}`, "Authorization", ""); status != http.StatusOK {
		t.Errorf("the code: %d %s", status, text)
	} else {
		check("/api/session", "Session", []byte(text))
	}
}

// asJSON turns what YAML has read into what JSON would.
func asJSON(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
