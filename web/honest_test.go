package web_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// described are the shapes of docs/openapi.yaml by their names.
func described(t *testing.T) func(name string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", through(t, doc)); err != nil {
		t.Fatal(err)
	}
	return func(name string) *jsonschema.Schema {
		s, err := c.Compile("openapi.json#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// through makes of a value what its JSON says.
func through(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFakeIsHonest holds what the browser's tests are shown to what the admin API is
// said to send: a page that works with the fake works with the real one.
func TestFakeIsHonest(t *testing.T) {
	shape := described(t)
	hold := func(what, name string, v any) {
		t.Helper()
		if err := shape(name).Validate(through(t, v)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	of := map[string]string{"hello": "Hello", "state": "State", "change": "Change", "requests": "LiveRequests", "sample": "Sample", "event": "Event", "log": "LogLines", "gap": "Gap"}
	for _, s := range append(scenes(), mediaScene()) {
		for _, m := range s.messages(true, "chat/1") {
			hold(s.name+": "+m.kind, of[m.kind], m.data)
		}
		hold(s.name+": history", "History", s.history(""))
		hold(s.name+": decisions", "Decisions", s.decisions())
		hold(s.name+": a decision", "Decision", s.decision("x"))
		hold(s.name+": diagnosis", "Diagnosis", s.diagnosis())
		hold(s.name+": the file", "FileChanges", s.fileChanges())
		hold(s.name+": ended", "EndedRequests", s.ended())
	}
	hold("change", "Change", obj{"at": at(0)})
	hold("thresholds", "Thresholds", thresholds())
}

// TestPreloaded: the page names every script at once, so that the browser need not
// find them one behind the other.
func TestPreloaded(t *testing.T) {
	page, err := os.ReadFile("ui/index.html")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir("ui", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".js" {
			return err
		}
		if name := "/ui/_/" + filepath.ToSlash(strings.TrimPrefix(path, "ui/")); !bytes.Contains(page, []byte(`"`+name+`"`)) {
			t.Errorf("index.html does not name %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"/ui/_/([^"]+)"`).FindAllSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join("ui", string(m[1]))); err != nil {
			t.Errorf("index.html names %s, which is not there", m[1])
		}
	}
}
