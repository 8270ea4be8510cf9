package launch

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"testing"
)

// TestFormsOfTheModel holds that the demonstration model's answers have the
// form that was asked for, at any temperature, and also where the budget is
// the least that the form needs.
func TestFormsOfTheModel(t *testing.T) {
	hs := demoServer(t)
	person := `{"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":0,"maximum":150},
		"tags":{"type":"array","items":{"enum":["a","b","c"]},"maxItems":3}},"required":["name","age","tags"],"additionalProperties":false}`
	forms := []struct {
		fields string
		check  func(string) error
	}{
		{`"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":` + person + `}}`, checkPerson},
		{`"response_format":{"type":"json_object"}`, func(s string) error { return json.Unmarshal([]byte(s), &map[string]any{}) }},
		{`"structured_outputs":{"regex":"[a-f]{3}-[0-9]{2,4}"}`, matches(`^[a-f]{3}-[0-9]{2,4}$`)},
		{`"structured_outputs":{"choice":["red","green","blue"]}`, matches(`^(red|green|blue)$`)},
		{`"structured_outputs":{"grammar":"root ::= \"x\" (\"+\" \"x\"){2}"}`, matches(`^x\+x\+x$`)},
		{`"structured_outputs":{"grammar":"start: sum\n?sum: sum \"+\" NAME | NAME\nNAME: /[xy]/\n"}`, matches(`^[xy](\+[xy])*$`)},
		{`"response_format":{"type":"structural_tag","format":{"type":"tag","begin":"<n>","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"</n>"}}`,
			matches(`^<n>-?\d+</n>$`)},
		{`"response_format":{"type":"structural_tag","structures":[{"begin":"a","schema":{"enum":[1,2]},"end":"."},{"begin":"e","schema":{"const":3},"end":"."}],"triggers":["a","e"]}`,
			matches(`^([^ae]|a[12]\.|e3\.)*(a|a[12]|e|e3)?$`)}, // cut by the budget
		{`"structured_outputs":{"structural_tag":"{\"format\":{\"type\":\"sequence\",\"elements\":[{\"type\":\"regex\",\"pattern\":\"[a-f]{2}\"},{\"type\":\"const_string\",\"value\":\"!\"}]}}"}`,
			matches(`^[a-f]{2}!$`)},
	}
	var wg sync.WaitGroup
	for i, form := range forms {
		for try := range 8 {
			wg.Go(func() {
				body := fmt.Sprintf(`{"messages":[{"role":"user","content":"Write name: Ann, age: %d as JSON."}],"temperature":%g,"seed":%d,"max_tokens":%d,%s}`,
					20+try, float64(try)/4, try, 60+40*try, form.fields)
				var a struct {
					Choices []struct {
						Message struct{ Content string }
						Finish  string `json:"finish_reason"`
					}
				}
				if err := postJSON(hs.URL+"/v1/chat/completions", json.RawMessage(body), &a); err != nil {
					t.Errorf("form %d: %v", i, err)
					return
				}
				if err := form.check(a.Choices[0].Message.Content); err != nil {
					t.Errorf("form %d, try %d: %q: %v", i, try, a.Choices[0].Message.Content, err)
				}
			})
		}
	}
	wg.Wait()
}

// TestRequiredToolsOfTheModel holds that the model calls one of the tools, with
// arguments that fit, although it was never taught to.
func TestRequiredToolsOfTheModel(t *testing.T) {
	hs := demoServer(t)
	tools := `[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"#/$defs/n"}},
		"required":["a","b"],"additionalProperties":false,"$defs":{"n":{"type":"integer","minimum":0,"maximum":99}}}}},
		{"type":"function","function":{"name":"stop","parameters":{"type":"object","properties":{},"additionalProperties":false}}}]`
	for try := range 6 {
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":"What is 23 + 45?"}],"tools":%s,"tool_choice":"required","parallel_tool_calls":%v,"temperature":%g,"seed":%d,"max_tokens":120}`,
			tools, try%2 == 0, float64(try)/3, try)
		var a struct {
			Choices []struct {
				Message struct {
					Calls []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
		}
		if err := postJSON(hs.URL+"/v1/chat/completions", json.RawMessage(body), &a); err != nil {
			t.Fatal(err)
		}
		calls := a.Choices[0].Message.Calls
		if len(calls) == 0 || try%2 == 1 && len(calls) != 1 || a.Choices[0].Finish != "tool_calls" {
			t.Fatalf("try %d: %+v", try, a)
		}
		for _, c := range calls {
			var v map[string]int
			if err := json.Unmarshal([]byte(c.Function.Arguments), &v); err != nil || c.Function.Name == "add" && (len(v) != 2 || v["a"] > 99) || c.Function.Name == "stop" && len(v) != 0 {
				t.Fatalf("try %d: %+v, %v", try, c, err)
			}
		}
	}
}

func checkPerson(text string) error {
	var p struct {
		Name string   `json:"name"`
		Age  *int     `json:"age"`
		Tags []string `json:"tags"`
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	if p.Age == nil || *p.Age < 0 || *p.Age > 150 || len(p.Tags) > 3 || len([]rune(p.Name)) > 12 {
		return fmt.Errorf("not a person: %+v", p)
	}
	return nil
}

func matches(pattern string) func(string) error {
	re := regexp.MustCompile(pattern)
	return func(s string) error {
		if !re.MatchString(s) {
			return fmt.Errorf("does not match %s", pattern)
		}
		return nil
	}
}
