package pass

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

const form = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\npainter\r\n--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n3\r\n" +
	"--b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a\"\r\n\r\n0123456789\r\n--b--\r\n"

func TestRead(t *testing.T) {
	for _, c := range []struct {
		ctype, body string
		whole       bool
		want        Said
		err         string
	}{
		{"application/json", `{"model":"m","n":4}`, true, Said{"m", 4}, ""},
		{"", `{"n":1e9,"model":"m"}`, true, Said{"m", 1}, ""},
		{"application/json", `{"model":"m","image":"AAAA`, false, Said{"m", 1}, ""},
		{"application/json", `{"image":"AAAA`, false, Said{"", 1}, ""},
		{"application/json", `{"image":{"model":"inner"}}`, true, Said{"", 1}, ""},
		{"application/json", `{"model":null}`, true, Said{"", 1}, ""},
		{"application/json", `{"model":3}`, true, Said{"", 1}, "model"},
		{"application/json", `{"model":"m"`, true, Said{"m", 1}, "not a JSON object"},
		{"application/json", `[1]`, true, Said{"", 1}, "does not begin with {"},
		{"application/json", ``, true, Said{"", 1}, "not a JSON object"},
		{"multipart/form-data; boundary=b", form, true, Said{"painter", 3}, ""},
		{"multipart/form-data; boundary=b", form[:len(form)-20], false, Said{"painter", 3}, ""},
		{"multipart/form-data; boundary=b", form[:len(form)-20], true, Said{"painter", 3}, "malformed"},
		{"multipart/form-data; boundary=b", "--b\r\n\r\nmodel", true, Said{"", 1}, "malformed"},
		{"multipart/form-data; boundary=b", strings.Replace(form, `"n"`, `"model"`, 1), true, Said{"painter", 1}, "given twice"},
		{"multipart/form-data", form, true, Said{"", 1}, "no boundary"},
		{"text/plain", "x", true, Said{"", 1}, "must be application/json"},
	} {
		got, err := Read(c.ctype, []byte(c.body), c.whole)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s %q: %+v %v; want %+v %q", c.ctype, c.body, got, err, c.want, c.err)
		}
	}
}

// FuzzRead finds the model that a decoder of the whole object finds, and takes any
// beginning of a body without a fault.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model":"m","n":2,"input":["a",{"model":"x"}]}`), 20)
	f.Add([]byte(form), 100)
	f.Add([]byte(`{"a":1,"model":"x"} trailing`), 3)
	f.Fuzz(func(t *testing.T, body []byte, cut int) {
		var said struct {
			Model *string `json:"model"`
		}
		got, err := Read("application/json", body, true)
		if whole := (map[string]json.RawMessage{}); json.Unmarshal(body, &whole) == nil && whole != nil && err == nil {
			if raw, ok := whole["model"]; ok && json.Unmarshal(raw, &said.Model) == nil && said.Model != nil && bytes.Count(body, []byte("model")) == 1 && got.Model != *said.Model {
				t.Errorf("%s: %q, want %q", body, got.Model, *said.Model)
			}
		}
		if cut < 0 || cut > len(body) {
			cut = len(body) / 2
		}
		for _, ctype := range []string{"application/json", "multipart/form-data; boundary=b"} {
			if _, err := Read(ctype, body[:cut], false); err != nil && ctype == "application/json" {
				t.Errorf("the beginning of a body is refused: %v", err)
			}
		}
	})
}

func TestReadLine(t *testing.T) {
	for line, want := range map[string]Line{
		"POST /v1/images/edits HTTP/1.1\r\n": {Path: "/v1/images/edits"},
		"GET /v1/realtime?model=a HTTP":      {Path: "/v1/realtime"},
		"GET /v1/real":                       {More: true},
		"GE":                                 {More: true},
		"GET /":                              {More: true},
		"GET /metrics":                       {},
		"\x16\x03\x01 noise without an end of a line": {Path: "noise"},
		"nospaceatallinthislonglineofbytes":           {},
		"":                                            {More: true},
	} {
		if got := ReadLine([]byte(line)); got != want {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	for path, want := range map[string]bool{
		"/v1/videos": true, "/v1/videos/": false, "/v1/videos/a": true, "/v1/videos/a/": false, "/v1/videos/a/content": true, "/v1/videos/a/remix": true,
		"/v1/videos/../x": false, "/v1/videos/a/delete": false, "/v1/images/generations": true, "/v1/images/generations/": false, "/v1/chat/completions": false,
	} {
		if _, ok := Find(path); ok != want {
			t.Errorf("%s: %v, want %v", path, ok, want)
		}
	}
}

func TestSpool(t *testing.T) {
	for _, c := range []struct {
		body  string
		whole bool
	}{{"", true}, {"abc", true}, {"abcd", true}, {"abcde", false}} {
		s, err := Take(strings.NewReader(c.body), 4)
		if err != nil || s.Whole != c.whole {
			t.Fatalf("%q: %v %v", c.body, s, err)
		}
		for n := range 2 {
			if n == 1 && !s.Again() {
				break
			}
			got, err := io.ReadAll(s.Reader())
			if err != nil || string(got) != c.body {
				t.Errorf("%q: %q %v", c.body, got, err)
			}
		}
		if s.Again() != c.whole {
			t.Errorf("%q can be sent again: %v", c.body, s.Again())
		}
	}
}

func TestLoads(t *testing.T) {
	var l Loads
	l.Add("a", 8)
	l.Add("b", 1)
	if got := strings.Join(l.Order([]string{"a", "b", "c"}), ""); got != "cba" {
		t.Errorf("got %s", got)
	}
	l.Add("a", -8)
	l.Add("b", -1)
	first := map[string]int{}
	for range 6 {
		first[l.Order([]string{"a", "b", "c"})[0]]++
	}
	if first["a"] != 2 || first["b"] != 2 || first["c"] != 2 {
		t.Errorf("equals do not take turns: %v", first)
	}
}
