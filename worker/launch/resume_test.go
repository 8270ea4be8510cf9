package launch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestResumeUnderGrammar cuts streams that a real grammar holds, on the real
// model, at every token: a schema, a regular expression, calls of tools, all
// with a seed; and wants what follows to be what would have followed.
func TestResumeUnderGrammar(t *testing.T) {
	hs := demoServer(t, "--max-num-seqs", "64")
	schema := `{"type":"object","properties":{"name":{"type":"string","maxLength":6},"age":{"type":"integer","minimum":0,"maximum":150},"tags":{"type":"array","items":{"enum":["a","b"]},"maxItems":2}},"required":["name","age"],"additionalProperties":false}`
	tools := `"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":99}},"required":["a"],"additionalProperties":false}}}]`
	for name, fields := range map[string]string{
		"schema": `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + schema + `}}`,
		"regex":  `"structured_outputs":{"regex":"([a-f]{3}-){2}[0-9]{2,5}"}`,
		"tools":  tools + `,"tool_choice":"required","parallel_tool_calls":false`,
		"named":  tools + `,"tool_choice":{"type":"function","function":{"name":"add"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"messages":[{"role":"user","content":"Who?"}],"temperature":1.1,"seed":5,"max_tokens":60,"stream":true,"return_token_ids":true,"stream_options":{"include_usage":true},` + fields
			whole := readStream(t, hs.URL, body+"}")
			if len(whole.ids) < 6 {
				t.Fatalf("an answer of %d tokens, %q", len(whole.ids), whole.text)
			}
			for cut := range whole.ids {
				sent, err := json.Marshal(whole.ids[:cut])
				if err != nil {
					t.Fatal(err)
				}
				rest := readStream(t, hs.URL, fmt.Sprintf(`%s,"roundhouse_resume":{"id":%q,"created":%d,"token_ids":%s}}`, body, whole.id, whole.created, sent))
				if rest.id != whole.id || fmt.Sprint(rest.ids) != fmt.Sprint(whole.ids[cut:]) || !strings.HasSuffix(whole.text, rest.text) || rest.finish != whole.finish || rest.tokens != whole.tokens {
					t.Fatalf("cut at %d: got %+v; want the end of %+v", cut, rest, whole)
				}
			}
		})
	}
}

// streamed is what a stream said.
type streamed struct {
	id      string
	created int64
	ids     []int32
	text    string // content, names and arguments
	finish  string
	tokens  int // by its account
}

func readStream(t *testing.T, url, body string) streamed {
	t.Helper()
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var out streamed
	scan := bufio.NewScanner(resp.Body)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		data, ok := bytes.CutPrefix(scan.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var e struct {
			ID      string
			Created int64
			Choices []struct {
				Delta struct {
					Content string
					Calls   []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				IDs    []int32 `json:"token_ids"`
				Finish string  `json:"finish_reason"`
			}
			Usage *struct {
				Completion int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal(data, &e); err != nil || e.ID == "" {
			t.Fatalf("%s: %v", data, err)
		}
		out.id, out.created = e.ID, e.Created
		for _, c := range e.Choices {
			out.text += c.Delta.Content
			for _, f := range c.Delta.Calls {
				out.text += f.Function.Name + f.Function.Arguments
			}
			out.ids = append(out.ids, c.IDs...)
			out.finish += c.Finish
		}
		if e.Usage != nil {
			out.tokens = e.Usage.Completion
		}
	}
	return out
}
