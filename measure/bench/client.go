package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"
)

// Backend is the API that requests are written for.
type Backend string

// The backends, by vLLM's names.
const (
	Completions Backend = "openai"
	Chat        Backend = "openai-chat"
	Embeddings  Backend = "openai-embeddings"
)

// Client sends requests to one service.
type Client struct {
	URL       string // of the endpoint
	Backend   Backend
	Model     string
	Header    http.Header
	Body      map[string]any // fields that every request carries
	IgnoreEOS bool
	Logprobs  int // < 0: none
	PerToken  bool

	http *http.Client
}

// NewClient returns a client for an endpoint. It keeps as many connections as
// there are requests at once, so that no request of a steady load pays for a
// connection.
func NewClient(url string, b Backend, insecure bool) *Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1<<16
	t.DisableCompression = true
	t.ReadBufferSize = 32 << 10
	t.ForceAttemptHTTP2 = false
	if insecure {
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // asked for by --insecure
	}
	return &Client{URL: url, Backend: b, Logprobs: -1, http: &http.Client{Transport: t}}
}

// Close lets the client's connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// encode returns the request's body.
func (c *Client) encode(r *Request) ([]byte, error) {
	body := map[string]any{"model": c.Model}
	if r.Model != "" {
		body["model"] = r.Model
	}
	switch c.Backend {
	case Chat:
		body["messages"] = []map[string]any{{"role": "user", "content": r.Prompt}}
		body["max_completion_tokens"] = r.Output
		if c.Logprobs >= 0 {
			body["logprobs"], body["top_logprobs"] = true, c.Logprobs
		}
	case Embeddings:
		body["input"] = r.Prompt
	default:
		body["prompt"], body["max_tokens"] = r.Prompt, r.Output
		if c.Logprobs >= 0 {
			body["logprobs"] = c.Logprobs
		}
	}
	if c.Backend != Embeddings {
		options := map[string]any{"include_usage": true}
		if c.PerToken {
			options["continuous_usage_stats"] = true
		}
		body["stream"], body["stream_options"] = true, options
		if c.IgnoreEOS {
			body["ignore_eos"] = true
		}
	}
	maps.Copy(body, c.Body)
	return json.Marshal(body)
}

// Do sends one request and follows its answer; s.Due is set already. clock is the
// time since the run's start.
func (c *Client) Do(ctx context.Context, r *Request, s *Sample, clock func() time.Duration) {
	err := c.do(ctx, r, s, clock)
	s.End = clock()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		s.Cut = true
	default:
		s.Err = err.Error()
	}
	if err == nil && r.Want != "" && strings.TrimSpace(s.Text) != r.Want {
		s.Wrong = true
	}
}

func (c *Client) do(ctx context.Context, r *Request, s *Sample, clock func() time.Duration) error {
	body, err := c.encode(r)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	maps.Copy(req.Header, c.Header)
	req.Header.Set("Content-Type", "application/json")
	s.Sent = clock()
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	s.Worker = res.Header.Get("x-roundhouse-worker")
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000)) // the service's own words, as far as they come
		return fmt.Errorf("status %d: %s", res.StatusCode, bytes.TrimSpace(text))
	}
	if c.Backend == Embeddings {
		return s.whole(res.Body, clock)
	}
	return s.follow(res.Body, clock, c.PerToken)
}

// whole reads an answer that does not stream.
func (s *Sample) whole(body io.Reader, clock func() time.Duration) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	s.First = clock()
	s.Last = s.First
	var e event
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	e.count(s)
	return nil
}

// event is what matters of one data line.
type event struct {
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content          string          `json:"content"`
			Reasoning        string          `json:"reasoning"`
			ReasoningContent string          `json:"reasoning_content"`
			ToolCalls        json.RawMessage `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		Prompt int `json:"prompt_tokens"`
		Output int `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

func (e *event) count(s *Sample) {
	if e.Usage != nil {
		s.Prompt, s.Output = e.Usage.Prompt, e.Usage.Output
	}
}

// errCut is the end of a stream that has neither an end mark nor an error.
var errCut = errors.New("the stream ended without [DONE]")

// stamped remembers when its last read came back.
type stamped struct {
	io.Reader
	clock func() time.Duration
	at    time.Duration
}

func (r *stamped) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.at = r.clock()
	return n, err
}

// follow reads an event stream to its end. The time of an event is that of the read
// which brought its last byte, taken before anything is parsed.
func (s *Sample) follow(body io.Reader, clock func() time.Duration, perToken bool) error {
	from := &stamped{Reader: body, clock: clock}
	in := bufio.NewReaderSize(from, 16<<10)
	before := 0 // tokens that came before this event
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); ok {
			data = bytes.TrimSpace(data)
			if string(data) == "[DONE]" {
				return s.ended()
			}
			if err := s.event(data, from.at, perToken, &before); err != nil {
				return err
			}
		}
		line = line[:0]
		if err == io.EOF {
			return errCut
		}
		if err != nil {
			return err
		}
	}
}

// ended reports a stream that ended properly and said nothing.
func (s *Sample) ended() error {
	if s.Events == 0 {
		return errors.New("the stream has no event with choices")
	}
	return nil
}

// event takes one data line in. With perToken an event's gap is divided among the
// tokens that it brought, by the usage that stands in every event.
func (s *Sample) event(data []byte, at time.Duration, perToken bool, before *int) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event is not JSON: %w", err)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" {
		return fmt.Errorf("an error event: %s", e.Error)
	}
	e.count(s)
	if len(e.Choices) == 0 {
		return nil
	}
	tokens := 1
	if perToken && e.Usage != nil {
		tokens, *before = max(1, e.Usage.Output-*before), e.Usage.Output
	}
	if s.Events == 0 {
		s.First = at
	} else {
		gap := at - s.Last
		for range tokens {
			s.Gaps = append(s.Gaps, gap/time.Duration(tokens))
		}
	}
	s.Events++
	s.Last = at
	for i := range e.Choices {
		c := &e.Choices[i]
		s.Text += c.Text + c.Delta.Content
		d := &c.Delta
		if s.Content == 0 && (c.Text+d.Content+d.Reasoning+d.ReasoningContent != "" || len(d.ToolCalls) > len("null")) {
			s.Content = at
		}
	}
	return nil
}
