package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"roundhouse/worker"
	"roundhouse/worker/parser"
)

type chatRequest struct {
	Model               string                     `json:"model"`
	Messages            json.RawMessage            `json:"messages"`
	MaxCompletionTokens *int                       `json:"max_completion_tokens"`
	Logprobs            bool                       `json:"logprobs"`
	TopLogprobs         *int                       `json:"top_logprobs"`
	Tools               json.RawMessage            `json:"tools"`
	ToolChoice          json.RawMessage            `json:"tool_choice"`
	ParallelToolCalls   *bool                      `json:"parallel_tool_calls"`
	ReasoningEffort     *string                    `json:"reasoning_effort"`
	IncludeReasoning    *bool                      `json:"include_reasoning"`
	Echo                bool                       `json:"echo"`
	AddGenerationPrompt *bool                      `json:"add_generation_prompt"`
	ContinueFinal       bool                       `json:"continue_final_message"`
	AddSpecial          bool                       `json:"add_special_tokens"`
	Documents           json.RawMessage            `json:"documents"`
	TemplateArguments   map[string]json.RawMessage `json:"chat_template_kwargs"`
	samplingFields
}

// chat is one request of this route on its way.
type chat struct {
	*job
	f       *chatRequest
	echo    string // the last message's text, said again first
	readers []*reader
	auto    bool // the model may call tools of its own accord
}

func (s *Server) newChat(r *http.Request, f *chatRequest) (*chat, *apiError) {
	model, err := s.model(f.Model)
	if err != nil {
		return nil, err
	}
	if f.Messages == nil {
		return nil, badShape("missing", "messages", "Field required")
	}
	if err := f.samplingFields.check(); err != nil {
		return nil, err
	}
	c := &chat{f: f, job: s.newJob(r, "chatcmpl-", &f.samplingFields, model)}
	tools, err := s.tools(f)
	if err != nil {
		return nil, err
	}
	tokens, last, err := s.renderChat(f)
	if err != nil {
		return nil, err
	}
	if f.Echo {
		c.echo = last
	}
	p, text, err := s.params(&f.samplingFields)
	if err != nil {
		return nil, err
	}
	if err := c.logprobs(&p); err != nil {
		return nil, err
	}
	c.text = text
	wanted := f.MaxCompletionTokens
	if wanted == nil {
		wanted = f.MaxTokens
	}
	if err := c.take(r, p, tokens, wanted); err != nil {
		return nil, err
	}
	if err := c.guide(tools, c.reqs[0].Tokens); err != nil {
		return nil, err
	}
	return c, nil
}

// guide sets up what reads and restricts each choice.
func (c *chat) guide(use toolUse, prompt []int32) *apiError {
	form, err := c.f.form()
	if err != nil {
		return err
	}
	if use.choice == "required" || use.choice == "named" {
		if form.Kind != FormNone {
			return badValue("tool_choice", "an answer that must call tools cannot have a form of its own as well")
		}
		form = use.form()
	}
	inside, behind := c.s.begun(prompt)
	reasons := c.s.cfg.ReasoningParser != "" && !behind && value(c.f.IncludeReasoning, true)
	if err := c.restrict(form, reasons, inside); err != nil {
		return err
	}
	o := parser.Options{Offered: use.offered(), Choice: choices[use.choice], Tools: c.s.cfg.ToolParser, Begun: inside}
	if reasons {
		o.Reasoning = c.s.cfg.ReasoningParser
	}
	if use.choice == "auto" {
		c.auto = true
		c.text.skipSpecial = false // some families mark calls by special tokens
	}
	for i := range c.choices() {
		p, err := parser.New(o)
		if err != nil {
			return internal(err.Error()) // the names were checked at the start
		}
		c.readers = append(c.readers, &reader{id: fmt.Sprintf("%s/%d", c.id, i), parser: p, named: use.choice == "named"})
	}
	return nil
}

// logprobs settles how many candidates come with each token.
func (c *chat) logprobs(p *worker.Params) *apiError {
	n := c.f.TopLogprobs
	if err := c.s.checkLogprobs("top_logprobs", n); err != nil {
		return err
	}
	if value(n, 0) > 0 && !c.f.Logprobs {
		return badValue("top_logprobs", "when using `top_logprobs`, `logprobs` must be set to true.")
	}
	if c.f.Logprobs {
		p.Logprobs = value(n, 0)
	}
	return nil
}
