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

// message is an answer's.
type message struct {
	Role        string     `json:"role"`
	Content     *string    `json:"content"`
	Refusal     *string    `json:"refusal"`
	Annotations any        `json:"annotations"`
	Audio       any        `json:"audio"`
	Function    any        `json:"function_call"`
	ToolCalls   []toolCall `json:"tool_calls"`
	Reasoning   *string    `json:"reasoning"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatChoice struct {
	Index    int           `json:"index"`
	Message  message       `json:"message"`
	Logprobs *chatLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
	Stop     any           `json:"stop_reason"`
	TokenIDs []int32       `json:"token_ids"`
}

type chatAnswer struct {
	ID             string                     `json:"id"`
	Object         string                     `json:"object"`
	Created        int64                      `json:"created"`
	Model          string                     `json:"model"`
	Choices        []chatChoice               `json:"choices"`
	ServiceTier    *string                    `json:"service_tier"`
	Fingerprint    *string                    `json:"system_fingerprint"`
	Usage          *usage                     `json:"usage"`
	PromptLogprobs []map[string]promptLogprob `json:"prompt_logprobs"`
	PromptTokenIDs []int32                    `json:"prompt_token_ids"`
	KVTransfer     any                        `json:"kv_transfer_params"`
}

// chatChunk is one event of a stream; it has only what was set.
type chatChunk struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"`
	Created        int64             `json:"created"`
	Model          string            `json:"model"`
	Choices        []chatChunkChoice `json:"choices"`
	Usage          *usage            `json:"usage,omitempty"`
	PromptTokenIDs []int32           `json:"prompt_token_ids,omitempty"`
}

type chatChunkChoice struct {
	Index    int           `json:"index"`
	Delta    chatDelta     `json:"delta"`
	Logprobs *chatLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
	Stop     *any          `json:"stop_reason,omitempty"` // nil until the end; null is a value there
	TokenIDs []int32       `json:"token_ids,omitzero"`
}

// chatDelta is what one event adds to a message.
type chatDelta struct {
	Role      string      `json:"role,omitempty"`
	Content   *string     `json:"content,omitempty"`
	Reasoning *string     `json:"reasoning,omitempty"`
	ToolCalls []toolDelta `json:"tool_calls,omitempty"`
}

type toolDelta struct {
	Index    int           `json:"index"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Function functionDelta `json:"function"`
}

type functionDelta struct {
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
}

func (d *chatDelta) empty() bool {
	return d.Content == nil && d.Reasoning == nil && len(d.ToolCalls) == 0
}

// chat is one request of this route on its way.
type chat struct {
	*job
	f       *chatRequest
	echo    string // the last message's text, said again first
	readers []*reader
	auto    bool // the model may call tools of its own accord
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	var f chatRequest
	if err := readBody(r, s.cfg.BodyLimit, &f); err != nil {
		writeError(w, err)
		return
	}
	c, err := s.newChat(r, &f)
	if err != nil {
		writeError(w, err)
		return
	}
	if f.Stream {
		c.stream(w, r)
		return
	}
	c.answer(w, r)
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
	tokens = s.truncate(tokens, &f.samplingFields)
	wanted := f.MaxCompletionTokens
	if wanted == nil {
		wanted = f.MaxTokens
	}
	if p.MaxTokens, err = s.room(len(tokens), wanted); err != nil {
		return nil, err
	}
	if err := checkMinTokens(p); err != nil {
		return nil, err
	}
	if err := c.add(r, &f.samplingFields, p, tokens); err != nil {
		return nil, err
	}
	if err := c.guide(tools, tokens); err != nil {
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

func (c *chat) logprobs(p *worker.Params) *apiError {
	n := c.f.TopLogprobs
	if n != nil && *n < 0 {
		return badValue("top_logprobs", "`top_logprobs` must be a positive value.")
	}
	if n != nil && *n > 0 && !c.f.Logprobs {
		return badValue("top_logprobs", "when using `top_logprobs`, `logprobs` must be set to true.")
	}
	if value(n, 0) > c.s.cfg.MaxLogprobs {
		return badValue("top_logprobs", "Requested sample logprobs of %d, which is greater than max allowed: %d", *n, c.s.cfg.MaxLogprobs)
	}
	if c.f.Logprobs {
		p.Logprobs = value(n, 0)
	}
	return nil
}

// answer gathers all and answers once.
func (c *chat) answer(w http.ResponseWriter, r *http.Request) {
	choices := make([]chatChoice, c.choices())
	messages := make([]gathered, len(choices))
	err := c.run(r.Context(), func(u update) error {
		ch := &choices[u.index]
		said := c.readers[u.index].read(&u)
		if u.replay {
			return nil
		}
		messages[u.index].add(said)
		if u.token >= 0 && c.f.Logprobs {
			if ch.Logprobs == nil {
				ch.Logprobs = &chatLogprobs{}
			}
			ch.Logprobs.Content = append(ch.Logprobs.Content, c.s.chatLogprob(u.event, c.reqs[0].Params.ProbeIDs, c.f.TokensAsIDs))
		}
		if u.token >= 0 && c.f.ReturnTokenIDs {
			ch.TokenIDs = append(ch.TokenIDs, u.token)
		}
		if u.finish != "" {
			ch.Finish, ch.Stop = c.finish(u)
		}
		return nil
	})
	if err != nil {
		if e := c.failure(r.Context(), err); e != nil {
			writeError(w, e)
		}
		return
	}
	out := chatAnswer{ID: c.id, Object: "chat.completion", Created: c.created, Model: c.model, Choices: choices, Usage: c.chatUsage()}
	for i := range choices {
		choices[i].Index = i
		choices[i].Message = messages[i].message(c.echo)
	}
	if c.f.PromptLogprobs != nil {
		out.PromptLogprobs = c.s.promptLogprobs(c.reqs[0].Tokens, c.promptRows[0])
	}
	if c.f.ReturnTokenIDs {
		out.PromptTokenIDs = c.reqs[0].Tokens
	}
	c.s.orca(w, r)
	writeJSON(w, http.StatusOK, out)
}

// finish is how the end of a choice is told.
func (c *chat) finish(u update) (*string, any) {
	rd := c.readers[u.index]
	why := rd.finish(u.finish)
	if c.auto {
		c.s.parsed.add(c.f.Stream, rd.parser.Calls() > 0)
	}
	return &why, u.stopped
}

// stream writes an event a token.
func (c *chat) stream(w http.ResponseWriter, r *http.Request) {
	ev := newEvents(w)
	defer ev.rest()
	opened := c.resumed
	err := c.run(r.Context(), func(u update) error {
		said := c.readers[u.index].read(&u)
		if u.replay {
			return nil
		}
		if !opened {
			opened = true
			if err := c.open(ev); err != nil {
				return err
			}
		}
		return c.say(ev, u, said)
	})
	if err != nil {
		ev.fail(c.failure(r.Context(), err))
		return
	}
	if c.s.cfg.ForceUsage || c.f.StreamOptions != nil && c.f.StreamOptions.IncludeUsage {
		chunk := c.chunk()
		chunk.Usage = c.chatUsage()
		if ev.send(chunk) != nil {
			return
		}
	}
	ev.done()
}

// open sends what comes before the first token: who speaks, of each choice.
func (c *chat) open(ev *events) error {
	for i := range c.choices() {
		empty := ""
		chunk := c.chunk(chatChunkChoice{Index: i, Delta: chatDelta{Role: "assistant", Content: &empty}})
		if i == 0 && c.f.ReturnTokenIDs {
			chunk.PromptTokenIDs = c.reqs[0].Tokens
		}
		if err := c.sendChunk(ev, chunk); err != nil {
			return err
		}
		if c.echo != "" {
			if err := c.sendChunk(ev, c.chunk(chatChunkChoice{Index: i, Delta: chatDelta{Content: &c.echo}})); err != nil {
				return err
			}
		}
	}
	return nil
}

// say sends one token's event, if it says anything.
func (c *chat) say(ev *events, u update, said chatDelta) error {
	if said.empty() && u.finish == "" && !c.f.ReturnTokenIDs && !c.f.Logprobs {
		return nil
	}
	choice := chatChunkChoice{Index: u.index, Delta: said}
	if said.empty() {
		empty := ""
		choice.Delta.Content = &empty
	}
	if u.token >= 0 && c.f.Logprobs {
		choice.Logprobs = &chatLogprobs{[]chatLogprob{c.s.chatLogprob(u.event, c.reqs[0].Params.ProbeIDs, c.f.TokensAsIDs)}}
	}
	if u.finish != "" {
		why, stopped := c.finish(u)
		choice.Finish, choice.Stop = why, &stopped
	}
	if c.f.ReturnTokenIDs {
		choice.TokenIDs = []int32{}
		if u.token >= 0 {
			choice.TokenIDs = append(choice.TokenIDs, u.token)
		}
	}
	return c.sendChunk(ev, c.chunk(choice))
}

func (c *chat) sendChunk(ev *events, chunk chatChunk) error {
	if o := c.f.StreamOptions; o != nil && o.ContinuousUsage && o.IncludeUsage {
		chunk.Usage = c.chatUsage()
	}
	return ev.send(chunk)
}

func (c *chat) chunk(choices ...chatChunkChoice) chatChunk {
	if choices == nil {
		choices = []chatChunkChoice{}
	}
	return chatChunk{ID: c.id, Object: "chat.completion.chunk", Created: c.created, Model: c.model, Choices: choices}
}

// chatUsage is the account of a chat.
func (c *chat) chatUsage() *usage {
	u := c.usage()
	if c.s.cfg.ReasoningParser != "" {
		u.Output = &outputDetails{}
		for _, r := range c.readers {
			u.Output.Reasoning += r.thought
		}
	}
	return u
}
