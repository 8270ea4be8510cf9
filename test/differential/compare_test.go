package differential

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompare holds that each kind of difference is seen, and that more keys and
// events than vLLM's are none.
func TestCompare(t *testing.T) {
	read := func(body string) *Answer {
		a := &Answer{Name: "a", Status: 200}
		a.readWhole([]byte(body))
		a.settle()
		return a
	}
	events := func(body string) *Answer {
		a := &Answer{Name: "a", Status: 200}
		a.readStream([]byte(body))
		a.settle()
		return a
	}
	const plain = `{"choices":[{"message":{"content":"x"},"finish_reason":"stop","logprobs":{"content":[{"logprob":-1}]}}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`
	for _, c := range []struct{ old, by, want string }{
		{"", "", ""}, {`{"choices"`, `{"more":1,"choices"`, ""}, {`"x"`, `"y"`, "text"}, {`"stop"`, `"length"`, "finish"}, {`"prompt_tokens":3`, `"prompt_tokens":4`, "prompt"},
		{`"completion_tokens":2`, `"completion_tokens":1`, "completion"}, {`"logprob":-1}`, `"logprob":-1.2}`, "logprobs"}, {`"logprob":-1}`, `"logprob":-1.04}`, ""},
		{`"usage"`, `"used"`, "keys prompt completion"}, {plain, `{"error":{"type":"a"}}`, "error"},
	} {
		var kinds []string
		for _, d := range Compare(read(plain), read(strings.Replace(plain, c.old, c.by, 1))) {
			kinds = append(kinds, d.Kind)
		}
		if got := strings.Join(kinds, " "); got != c.want {
			t.Errorf("%s for %s: differs in %q; want %q", c.by, c.old, got, c.want)
		}
	}
	for said, want := range map[string]string{`"content":"x"`: "", `"reasoning":"x"`: "thoughts", `"reasoning":"y"`: "text"} {
		a := read(strings.Replace(`{"choices":[{"index":0,"message":{"role":"assistant",SAID}}]}`, "SAID", said, 1))
		b := read(`{"choices":[{"index":0,"message":{"role":"assistant","content":"x","reasoning":null}}]}`)
		got := ""
		if d := Compare(a, b); len(d) > 0 {
			got = d[0].Kind
		}
		if got != want {
			t.Errorf("%s: differs in %q; want %q", said, got, want)
		}
	}
	stream := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n"
	if d := Compare(events(stream), events(strings.Replace(stream, "data: [DONE]\n\n", "", 1))); len(d) != 2 || d[0].Kind != "events" || d[1].Kind != "count" {
		t.Errorf("without its end: %v", d)
	}
	if d := Compare(events(stream), events(strings.Replace(stream, "data: [", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\ndata: [", 1))); len(d) != 0 {
		t.Errorf("with an event more: %v", d)
	}
}

// TestTable holds how the table is read, and that a row without three cells is
// told by its line.
func TestTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "api.md")
	write := func(rows string) {
		if err := os.WriteFile(file, []byte("# x\n\n"+heading+"\n---|---|---\n"+rows+"\nno | row | of it\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("`chat/a*` `text/b` | text finish | because\n`2:chat/a*` | keys | of the second alone\n")
	table, err := Table(file)
	if err != nil || len(table) != 2 || table[0].Reason != "because" {
		t.Fatalf("%v, %v", table, err)
	}
	for d, want := range map[Difference]bool{
		{Name: "chat/abc", Kind: "text"}: true, {Name: "text/b", Kind: "finish"}: true, {Name: "chat/abc", Kind: "keys"}: false, {Name: "chat/b", Kind: "text"}: false,
	} {
		if got := Wanted(table, "", d); got != want {
			t.Errorf("%v: wanted %v", d, got)
		}
	}
	keys := Difference{Name: "chat/abc", Kind: "keys"}
	if !Wanted(table, "2:", keys) || Wanted(table, "3:", keys) || !Wanted(table, "2:", Difference{Name: "text/b", Kind: "text"}) {
		t.Error("rows of a setup")
	}
	write("`chat/a` | text")
	if _, err := Table(file); err == nil || !strings.Contains(err.Error(), "api.md:5: 2 cells") {
		t.Errorf("got %v", err)
	}
}
