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
	MaxCompletionTokens *int                       `json:"max_completion_tokens,wide"`
	Logprobs            bool                       `json:"logprobs"`
	TopLogprobs         *int                       `json:"top_logprobs,number"`
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

	unparsed    bool   // without a tool parser tools are shown to the model all the same, as vLLM does for the Responses API
	answerField string // as the API that asked calls the bound of an answer; "": as here
}

// chat is one request of this route on its way.
type chat struct {
	*job
	f       *chatRequest
	wrote   *prompt
	echoes  []string // of each prompt, the last message's text, said again first
	silent  bool     // nothing of the model's thoughts is told
	readers []*reader
	auto    bool // the model may call tools of its own accord
}

func (s *Server) newChat(r *http.Request, f *chatRequest) (*chat, *apiError) {
	model, err := s.model(f.Model)
	if err != nil {
		return nil, err
	}
	if err := f.check(s.cfg.MaxModelLen); err != nil {
		return nil, err
	}
	c := &chat{f: f, job: s.newJob(r, "chatcmpl-", &f.samplingFields, model)}
	tools, err := s.tools(f)
	if err != nil {
		return nil, err
	}
	if c.wrote, err = s.renderChat(f); err != nil {
		return nil, err
	}
	c.echoes = []string{""}
	if f.Echo && c.wrote.last.role == c.speaker() {
		c.echoes[0] = c.wrote.last.text
	}
	p, text, err := s.params(&f.samplingFields)
	if err != nil {
		return nil, err
	}
	if err := c.logprobs(&p); err != nil {
		return nil, err
	}
	if err := s.beamParams(&f.samplingFields, &p); err != nil {
		return nil, err
	}
	c.text = text
	wanted, field := f.MaxCompletionTokens, "max_completion_tokens"
	if wanted == nil {
		wanted, field = f.MaxTokens, "max_tokens"
	}
	if f.answerField != "" {
		field = f.answerField
	}
	if err := c.takeSeen(r, p, wanted, field); err != nil {
		return nil, err
	}
	if err := c.guide(tools); err != nil {
		return nil, err
	}
	return c, nil
}

// efforts are how hard a model may be asked to think.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

func (f *chatRequest) check(most int) *apiError {
	if f.Messages == nil {
		return badShape("missing", "body.messages", "Field required")
	}
	if err := oneOf(f.ReasoningEffort, "body.reasoning_effort", efforts...); err != nil {
		return err
	}
	return f.samplingFields.check(most)
}

// guide sets up what reads and restricts each choice.
func (c *chat) guide(use toolUse) *apiError {
	form, err := c.f.form()
	if err != nil {
		return err
	}
	if use.choice == "required" || use.choice == "named" {
		if form.Kind != FormNone {
			return badValue("", "an answer that must call tools cannot have a form of its own as well")
		}
		form = use.form()
	}
	inside, behind := c.s.begun(c.wrote.ending())
	channels := parser.Channels(c.s.cfg.ReasoningParser, c.s.cfg.ToolParser)
	reasons := c.s.cfg.ReasoningParser != "" && !behind
	if err := c.restrict(form, thinking{allowed: reasons && !channels, begun: inside, budget: c.f.ThinkingBudget}); err != nil {
		return err
	}
	c.silent = reasons && !value(c.f.IncludeReasoning, true)
	o := parser.Options{Offered: use.offered(), Choice: choices[use.choice], Tools: c.s.cfg.ToolParser, Begun: inside}
	if reasons {
		o.Reasoning = c.s.cfg.ReasoningParser
	}
	if use.choice == "auto" {
		c.auto = true
		c.text.skipSpecial = false // some families mark calls by special tokens
	}
	if channels {
		c.text.skipSpecial, c.text.marks = false, c.s.channelMarks()
	}
	for i := range c.choices() {
		p, err := parser.New(o)
		if err != nil {
			return internal(err.Error()) // the names were checked at the start
		}
		c.readers = append(c.readers, &reader{id: fmt.Sprintf("%s/%d", c.id, i), parser: p, named: use.choice == "named", silent: c.silent})
	}
	return nil
}

// logprobs settles how many candidates come with each token, and with echo
// with those of the prompt.
func (c *chat) logprobs(p *worker.Params) *apiError {
	n := c.f.TopLogprobs
	switch {
	case len(c.f.LogprobIDs) > 0 && !c.f.Logprobs:
		return badValue("logprob_token_ids", "when using `logprob_token_ids`, `logprobs` must be set to true.")
	case value(n, 0) < -1:
		return badValue("top_logprobs", "`top_logprobs` must be a positive value or -1.")
	case value(n, 0) != 0 && !c.f.Logprobs:
		return badValue("top_logprobs", "when using `top_logprobs`, `logprobs` must be set to true.")
	}
	if err := c.s.checkLogprobs("logprobs", "sample", n); err != nil {
		return err
	}
	if c.f.Logprobs {
		p.Logprobs = value(n, 0)
	}
	if c.f.Echo && c.f.PromptLogprobs == nil {
		c.f.PromptLogprobs, p.PromptLogprobs = new(value(n, 0)), value(n, 0)
	}
	return nil
}

// promptText is the prompt as the template wrote it.
func (c *chat) promptText() string { return c.wrote.text() }

// echo is what is said again before a choice.
func (c *chat) echo(choice int) string { return c.echoes[choice/c.reqs[0].Params.N] }

// speaker is the role of an answer: without a generation prompt that of the last message,
// which the answer continues.
func (c *chat) speaker() string {
	if value(c.f.AddGenerationPrompt, true) || c.wrote.last.role == "" {
		return c.s.cfg.Role
	}
	return c.wrote.last.role
}

// hides reports whether tokens and their logprobs stay untold, because among
// them are those of thoughts that are not to be told.
func (c *chat) hides() bool { return c.silent && !c.fromUs }
