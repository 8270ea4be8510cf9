package server

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"roundhouse/kernels"
)

// completed is what was gathered of one choice.
type completed struct {
	text    strings.Builder
	tokens  []int32
	chosen  []*kernels.Choice // of each token
	finish  string
	stopped any
}

func (g *completed) add(u *update) {
	g.text.WriteString(u.text)
	if u.token >= 0 {
		g.tokens, g.chosen = append(g.tokens, u.token), append(g.chosen, &u.event.Chosen)
	}
	if u.finish != "" {
		g.finish, g.stopped = string(u.finish), u.stopped
	}
}

// answer gathers all and answers once.
func (c *completion) answer(w http.ResponseWriter, r *http.Request) {
	gathered := make([]completed, c.choices())
	err := c.run(r.Context(), func(u update) error {
		if !u.replay {
			gathered[u.index].add(&u)
		}
		return nil
	})
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	choices := make([]completionChoice, len(gathered))
	for i := range gathered {
		choices[i] = c.choice(i, &gathered[i])
	}
	if c.discard {
		c.generated = 0
	}
	c.s.orca(w, r)
	writeJSON(w, http.StatusOK, completionAnswer{
		ID: c.id, Object: "text_completion", Created: c.created, Model: c.model, Choices: choices, Fingerprint: c.s.fingerprint(), Usage: c.usage(),
	})
}

// choice is one of an answer's choices.
func (c *completion) choice(i int, g *completed) completionChoice {
	p := i / c.reqs[0].Params.N
	req := &c.reqs[p]
	if c.discard {
		g.tokens, g.chosen = nil, nil
		g.text.Reset()
	}
	ch := completionChoice{Index: i, Text: g.text.String(), Finish: &g.finish, Stop: g.stopped}
	if c.f.Echo {
		ch.Text = c.texts[p] + ch.Text
	}
	if c.f.Logprobs != nil {
		ch.Logprobs = &textLogprobs{}
		if c.f.Echo {
			c.echoLogprobs(ch.Logprobs, p)
		}
		for k, id := range g.tokens {
			ch.Logprobs.add(c.s, id, g.chosen[k], req.Params.ProbeIDs, c.f.TokensAsIDs)
		}
	}
	if c.f.ReturnTokenIDs {
		ch.TokenIDs, ch.PromptTokenIDs = g.tokens, req.Tokens
	}
	if c.f.PromptLogprobs != nil {
		ch.PromptLogprobs = c.s.promptLogprobs(req.Tokens, c.promptRows[p])
	}
	return ch
}

// echoLogprobs puts the prompt's tokens before the answer's.
func (c *completion) echoLogprobs(l *textLogprobs, p int) {
	prompt := c.reqs[p].Tokens
	byPosition := make([]*kernels.Choice, len(prompt))
	for i := range c.promptRows[p] {
		row := &c.promptRows[p][i]
		byPosition[row.Position] = &row.Choice
	}
	for i, id := range prompt {
		l.add(c.s, id, byPosition[i], nil, c.f.TokensAsIDs)
	}
}

// completionStream writes a completion's events.
type completionStream struct {
	*completion
	ev      *events
	offsets []int  // of the next token's text, by choice
	opened  []bool // choices of which something was said
}

// stream writes an event a token.
func (c *completion) stream(w http.ResponseWriter, r *http.Request) {
	st := &completionStream{completion: c, ev: newEvents(w), offsets: make([]int, c.choices()), opened: make([]bool, c.choices())}
	defer st.ev.rest()
	for i := range st.opened {
		st.opened[i] = len(c.reqs[0].Resume) > 0
	}
	err := c.run(r.Context(), func(u update) error {
		if u.replay {
			st.replay(&u)
			return nil
		}
		return st.say(&u)
	})
	if err != nil {
		st.ev.fail(c.failure(r.Context(), err))
		return
	}
	if c.discard {
		c.generated = 0
	}
	account := c.chunk()
	account.Usage, account.Fingerprint = c.usage().atEnd(), c.s.fingerprint()
	c.end(st.ev, account)
}

// replay counts what was sent before.
func (st *completionStream) replay(u *update) {
	at := &st.offsets[u.index]
	if st.f.Echo && *at == 0 {
		l := textLogprobs{}
		st.echoLogprobs(&l, 0)
		*at = l.next
	}
	*at += utf8.RuneCountInString(st.s.tokenText(u.token, false))
}

// say sends one token's event, if it says anything.
func (st *completionStream) say(u *update) error {
	text, p := u.text, u.index/st.reqs[0].Params.N
	opening := !st.opened[u.index]
	st.opened[u.index] = true
	if st.discard {
		text = ""
	}
	if opening && st.f.Echo {
		text = st.texts[p] + text
	}
	choice := completionChunkChoice{Index: u.index, Text: text, Stop: u.stopped}
	if u.finish != "" {
		why := string(u.finish)
		choice.Finish = &why
	}
	st.logprobs(&choice, u, p, opening)
	if st.f.ReturnTokenIDs {
		choice.TokenIDs = []int32{}
		if u.token >= 0 && !st.discard {
			choice.TokenIDs = append(choice.TokenIDs, u.token)
		}
		if opening {
			choice.PromptTokenIDs = st.reqs[p].Tokens
		}
	}
	chunk := st.chunk(choice)
	if st.usageInAll() {
		chunk.Usage = soFar(len(st.reqs[p].Tokens), u.tokens)
	}
	if u.finish != "" && !st.usageAtEnd() {
		chunk.Fingerprint = st.s.fingerprint()
	}
	return st.ev.send(chunk)
}

func (st *completionStream) logprobs(choice *completionChunkChoice, u *update, p int, opening bool) {
	if st.f.Logprobs == nil {
		return
	}
	l := &textLogprobs{next: st.offsets[u.index]}
	if opening && st.f.Echo {
		st.echoLogprobs(l, p)
	}
	if u.token >= 0 && !st.discard {
		l.add(st.s, u.token, &u.event.Chosen, st.reqs[p].Params.ProbeIDs, st.f.TokensAsIDs)
	}
	st.offsets[u.index] = l.next
	if len(l.Tokens) > 0 {
		choice.Logprobs = l
	}
}

func (c *completion) chunk(choices ...completionChunkChoice) completionChunk {
	if choices == nil {
		choices = []completionChunkChoice{}
	}
	return completionChunk{ID: c.id, Object: "text_completion", Created: c.created, Model: c.model, Choices: choices}
}
