package server

import (
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
		c.refuse(w, r, err)
		return
	}
	out := chatAnswer{ID: c.id, Object: "chat.completion", Created: c.created, Model: c.model, Choices: choices, Usage: c.chatUsage()}
	for i := range choices {
		choices[i].Index = i
		choices[i].Message = messages[i].message(c.s.cfg.Role, c.echo)
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
	account.Usage = c.chatUsage()
	c.end(ev, account)
}

// open sends what comes before the first token: who speaks, of each choice.
func (c *chat) open(ev *events) error {
	for i := range c.choices() {
		empty := ""
		chunk := c.chunk(chatChunkChoice{Index: i, Delta: chatDelta{Role: c.s.cfg.Role, Content: &empty}})
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
	if c.usageInAll() {
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
