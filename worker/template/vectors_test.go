package template

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"
)

// vectorTime is the time that testdata/vectors.py renders at.
var vectorTime = time.Date(2026, 3, 7, 16, 5, 9, 123456000, time.UTC)

// TestVectors compares with what transformers made of the same templates.
// testdata/vectors.py says how.
func TestVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vars  []json.RawMessage `json:"vars"`
		Cases []struct {
			Template string  `json:"template"`
			Vars     int     `json:"vars"`
			Text     *string `json:"text"`
			Error    string  `json:"error"`
			Raised   bool    `json:"raised"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		got, err := renderJSON(c.Template, file.Vars[c.Vars])
		var raised *RaisedError
		switch {
		case c.Text == nil && err == nil:
			t.Errorf("%s\ngives %q; want the error %s", c.Template, got, c.Error)
		case c.Text == nil && errors.As(err, &raised) != c.Raised:
			t.Errorf("%s\nfails with %v; want %s", c.Template, err, c.Error)
		case c.Text != nil && err != nil:
			t.Errorf("%s\nfails with %v; want %q", c.Template, err, *c.Text)
		case c.Text != nil && got != *c.Text:
			t.Errorf("%s\ngives %q\nwant  %q", c.Template, got, *c.Text)
		}
	}
}

// renderJSON renders a template with variables given as a JSON object.
func renderJSON(src string, vars json.RawMessage) (string, error) {
	t, err := Parse(src)
	if err != nil {
		return "", err
	}
	v, err := FromJSON(vars)
	if err != nil {
		return "", err
	}
	all := map[string]any{}
	d := v.(*Dict)
	for _, k := range d.Keys() {
		all[k], _ = d.Get(k)
	}
	return t.RenderString(all, Limits{Now: vectorTime})
}
