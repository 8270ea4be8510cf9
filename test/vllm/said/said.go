package said

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Said is all that a stream said. Parts are its texts, each by what it is of:
// "0 content", "1 tool 0 arguments".
type Said struct {
	Status int
	Parts  map[string]string
	Ends   map[string]string // the finish reason of each choice
	Tokens map[string]int    // of each choice, those with a log-probability or an id
	Usage  string            // the last
	IDs    []string          // of the answer; one, if all is well
	Errors []string
	Done   bool // the end mark came
	Events int
}

// Read reads a stream to its end. each is called after every event.
func Read(path string, status int, r io.Reader, each func(*Said)) *Said {
	s := &Said{Status: status, Parts: map[string]string{}, Ends: map[string]string{}, Tokens: map[string]int{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			if status != 200 && len(lines.Bytes()) > 0 {
				s.Errors = append(s.Errors, lines.Text())
			}
			continue
		}
		s.Events++
		if string(data) == "[DONE]" {
			s.Done = true
		} else if err := s.event(path, data); err != nil {
			s.Errors = append(s.Errors, fmt.Sprintf("the event %.200q: %v", data, err))
		}
		each(s)
	}
	if err := lines.Err(); err != nil {
		s.Errors = append(s.Errors, "cut: "+err.Error())
	}
	return s
}

func (s *Said) event(path string, data []byte) error {
	var failed struct {
		Type  string
		Error json.RawMessage
	}
	if err := json.Unmarshal(data, &failed); err != nil {
		return err
	}
	if len(failed.Error) > 0 || failed.Type == "error" {
		s.Errors = append(s.Errors, string(data))
		return nil
	}
	switch path {
	case "/v1/messages":
		return s.message(data)
	case "/v1/responses":
		return s.response(data)
	}
	return s.chunk(data)
}

func (s *Said) add(part, text string) {
	if text != "" {
		s.Parts[part] += text
	}
}

func (s *Said) known(id string) {
	if id != "" && !slices.Contains(s.IDs, id) {
		s.IDs = append(s.IDs, id)
	}
}

// chunk is an event of a chat or a completion.
type chunk struct {
	ID      string
	Choices []struct {
		Index int
		Text  string
		Delta struct {
			Content          string
			Reasoning        string
			ReasoningContent string `json:"reasoning_content"`
			ToolCalls        []struct {
				Index    int
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Finish   string `json:"finish_reason"`
		TokenIDs []int  `json:"token_ids"`
		Logprobs *struct {
			Content []any
			Tokens  []string
		}
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
}

func (s *Said) chunk(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	s.known(c.ID)
	for _, ch := range c.Choices {
		at := fmt.Sprint(ch.Index)
		s.add(at+" text", ch.Text)
		s.add(at+" content", ch.Delta.Content)
		s.add(at+" reasoning", ch.Delta.Reasoning+ch.Delta.ReasoningContent)
		for _, call := range ch.Delta.ToolCalls {
			s.add(fmt.Sprintf("%s tool %d name", at, call.Index), call.Function.Name)
			s.add(fmt.Sprintf("%s tool %d arguments", at, call.Index), call.Function.Arguments)
		}
		if ch.Finish != "" {
			s.Ends[at] += ch.Finish
		}
		if len(ch.TokenIDs) > 0 {
			s.Tokens[at+" ids"] += len(ch.TokenIDs)
		}
		if ch.Logprobs != nil {
			s.Tokens[at+" logprobs"] += len(ch.Logprobs.Content) + len(ch.Logprobs.Tokens)
		}
	}
	if c.Usage != nil {
		s.Usage = fmt.Sprintf("%d and %d", c.Usage.Prompt, c.Usage.Completion)
	}
	return nil
}

// message takes an event of /v1/messages.
func (s *Said) message(data []byte) error {
	var m struct {
		Type    string
		Index   int
		Message struct{ ID string }
		Block   struct{ Type, Name string } `json:"content_block"`
		Delta   struct {
			Text, Thinking string
			Partial        string `json:"partial_json"`
			Stop           string `json:"stop_reason"`
		}
		Usage struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		}
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	s.known(m.Message.ID)
	at := fmt.Sprint(m.Index)
	s.add(at+" kind", m.Block.Type+m.Block.Name)
	s.add(at+" text", m.Delta.Text)
	s.add(at+" thinking", m.Delta.Thinking)
	s.add(at+" input", m.Delta.Partial)
	if m.Delta.Stop != "" {
		s.Ends["0"] += m.Delta.Stop
		s.Usage = fmt.Sprintf("%d and %d", m.Usage.Input, m.Usage.Output)
	}
	s.Done = s.Done || m.Type == "message_stop"
	return nil
}

// response takes an event of /v1/responses.
func (s *Said) response(data []byte) error {
	var e struct {
		Type     string
		Output   int `json:"output_index"`
		Delta    string
		Response struct {
			ID, Status string
			Usage      *struct {
				Input  int `json:"input_tokens"`
				Output int `json:"output_tokens"`
			}
		}
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	s.known(e.Response.ID)
	s.add(fmt.Sprintf("%d %s", e.Output, e.Type), e.Delta)
	if e.Type == "response.completed" || e.Type == "response.incomplete" {
		s.Done = true
		s.Ends["0"] += e.Response.Status
		if u := e.Response.Usage; u != nil {
			s.Usage = fmt.Sprintf("%d and %d", u.Input, u.Output)
		}
	}
	return nil
}

// Whole reports why a stream is not a whole answer, or nil.
func (s *Said) Whole() error {
	switch {
	case s.Status != 200:
		return fmt.Errorf("status %d: %v", s.Status, s.Errors)
	case len(s.Errors) > 0:
		return fmt.Errorf("after %d events: %s", s.Events, s.Errors[0])
	case !s.Done:
		return fmt.Errorf("no end mark after %d events", s.Events)
	case len(s.IDs) != 1:
		return fmt.Errorf("ids %q", s.IDs)
	case len(s.Ends) == 0:
		return fmt.Errorf("no finish reason")
	}
	return nil
}

// Differs reports how a whole answer differs from another, or nil.
func (s *Said) Differs(from *Said) error {
	for _, part := range slices.Sorted(maps.Keys(from.Parts)) {
		if got, want := s.Parts[part], from.Parts[part]; got != want {
			return fmt.Errorf("%s: %.300q; undisturbed %.300q", part, got, want)
		}
	}
	switch {
	case len(s.Parts) != len(from.Parts):
		return fmt.Errorf("parts %v; undisturbed %v", slices.Sorted(maps.Keys(s.Parts)), slices.Sorted(maps.Keys(from.Parts)))
	case !reflect.DeepEqual(s.Ends, from.Ends):
		return fmt.Errorf("finish reasons %v; undisturbed %v", s.Ends, from.Ends)
	case !reflect.DeepEqual(s.Tokens, from.Tokens):
		return fmt.Errorf("tokens %v; undisturbed %v", s.Tokens, from.Tokens)
	case s.Usage != from.Usage:
		return fmt.Errorf("usage %s; undisturbed %s", s.Usage, from.Usage)
	}
	return nil
}

// Begins reports whether a whole answer is the beginning of another.
func (s *Said) Begins(from *Said) bool {
	for part, text := range s.Parts {
		if !strings.HasPrefix(from.Parts[part], text) {
			return false
		}
	}
	return true
}

// Clean reports whether a stream that could not go on was ended as it should be: one
// error, and no end mark.
func (s *Said) Clean() bool { return len(s.Errors) == 1 && !s.Done }
