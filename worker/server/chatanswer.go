package server

import (
	"encoding/json"
	"net/http"
)

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
		if u.token >= 0 && c.f.Logprobs && !c.hides() {
			if ch.Logprobs == nil {
				ch.Logprobs = &chatLogprobs{}
			}
			ch.Logprobs.Content = append(ch.Logprobs.Content, c.s.chatLogprob(u.event, c.reqs[0].Params.ProbeIDs, c.f.TokensAsIDs))
		}
		if u.token >= 0 && c.f.ReturnTokenIDs && !c.hides() {
			ch.TokenIDs = append(ch.TokenIDs, u.token)
		}
		if u.finish != "" {
			ch.Finish, ch.Stop = c.finish(u)
		}
		return nil
	})
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	out := chatAnswer{ID: c.id, Object: "chat.completion", Created: c.created, Model: c.model, Choices: choices, Fingerprint: c.s.fingerprint(), Usage: c.chatUsage()}
	for i := range choices {
		choices[i].Index = i
		choices[i].Message = messages[i].message(c.speaker(), c.echo(i))
	}
	if c.f.PromptLogprobs != nil {
		out.PromptLogprobs = c.s.promptLogprobs(c.reqs[0].Tokens, c.promptRows[0])
	}
	if c.f.ReturnTokenIDs {
		out.PromptTokenIDs = c.reqs[0].Tokens
	}
	if c.f.PromptText {
		out.PromptText = new(c.promptText())
	}
	c.s.orca(w, r)
	writeJSON(w, http.StatusOK, out)
}

// finish is how the end of a choice is told.
func (c *chat) finish(u update) (*string, any) {
	rd := c.readers[u.index]
	why := rd.finish(u.finish)
	c.parsed("chat_completions", rd)
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
	account := c.chunk()
	account.Usage, account.Fingerprint = c.chatUsage().atEnd(), c.s.fingerprint()
	c.end(ev, account)
}

// open sends what comes before the first token: who speaks, of each choice.
func (c *chat) open(ev *events) error {
	for i := range c.choices() {
		empty := ""
		chunk := c.chunk(chatChunkChoice{Index: i, Delta: chatDelta{Role: c.speaker(), Content: &empty}})
		chunk.PromptTokenIDs, chunk.PromptText = null, null
		if c.f.ReturnTokenIDs {
			chunk.PromptTokenIDs = marshalled(c.reqs[0].Tokens)
		}
		if c.f.PromptText {
			chunk.PromptText = marshalled(c.promptText())
		}
		if err := c.sendChunk(ev, chunk, 0); err != nil {
			return err
		}
	}
	for i := range c.choices() {
		text := c.echo(i)
		if text == "" {
			break
		}
		if err := c.sendChunk(ev, c.chunk(chatChunkChoice{Index: i, Delta: chatDelta{Content: &text}}), 0); err != nil {
			return err
		}
	}
	return nil
}

// null is JSON's, where a field is to say that there is nothing.
var null = json.RawMessage("null")

// say sends one token's event: also while its text is held back, unless by a
// parser, which may drop it.
func (c *chat) say(ev *events, u update, said chatDelta) error {
	ids, logprobs := c.f.ReturnTokenIDs && !c.hides(), c.f.Logprobs && !c.hides()
	if said.empty() && u.text != "" && u.finish == "" && !ids && !logprobs {
		return nil
	}
	choice := chatChunkChoice{Index: u.index, Delta: said, TokenIDs: null}
	if said.empty() && (u.finish == "" || !c.parses()) {
		empty := ""
		choice.Delta.Content = &empty
	}
	if u.token >= 0 && logprobs {
		choice.Logprobs = &chatLogprobs{[]chatLogprob{c.s.chatLogprob(u.event, c.reqs[0].Params.ProbeIDs, c.f.TokensAsIDs)}}
	}
	if u.finish != "" {
		why, stopped := c.finish(u)
		choice.Finish, choice.Stop = why, &stopped
	}
	if ids {
		list := []int32{}
		if u.token >= 0 {
			list = append(list, u.token)
		}
		choice.TokenIDs = marshalled(list)
	}
	chunk := c.chunk(choice)
	if u.finish != "" && !c.usageAtEnd() {
		chunk.Fingerprint = c.s.fingerprint()
	}
	return c.sendChunk(ev, chunk, u.tokens)
}

// parses reports whether this worker reads answers with a parser.
func (c *chat) parses() bool { return c.s.cfg.ToolParser != "" || c.s.cfg.ReasoningParser != "" }

// sendChunk sends an event of a choice that has so many tokens by then.
func (c *chat) sendChunk(ev *events, chunk chatChunk, tokens int) error {
	if c.usageInAll() {
		u := &chatSoFar{Prompt: c.prompt, Total: c.prompt + tokens, Completion: tokens}
		if c.s.cfg.ReasoningParser != "" {
			u.Output = &outputDetails{min(tokens, c.readers[chunk.Choices[0].Index].thought)}
		}
		chunk.Usage = u
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
