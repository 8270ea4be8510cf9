package server

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"roundhouse/kernels"
	"roundhouse/worker"
)

// lowest stands for minus infinity, which JSON does not have.
const lowest = -9999.0

func logprob(logit, logSumExp float32) float64 {
	v := float64(logit) - float64(logSumExp)
	if math.IsInf(v, 0) || math.IsNaN(v) || v < lowest {
		return lowest
	}
	return v
}

// tokenText is how a token is shown among logprobs.
func (s *Server) tokenText(id int32, asID bool) string {
	if asID {
		return fmt.Sprintf("token_id:%d", id)
	}
	return strings.ToValidUTF8(string(s.cfg.Tokenizer.TokenBytes(id)), "\uFFFD")
}

// chatLogprob is one token's entry in a chat answer.
type chatLogprob struct {
	Token   string        `json:"token"`
	Logprob float64       `json:"logprob"`
	Bytes   []int         `json:"bytes"`
	Top     []chatLogprob `json:"top_logprobs,omitzero"`
}

type chatLogprobs struct {
	Content []chatLogprob `json:"content"`
}

func (s *Server) chatEntry(id int32, logit, sum float32, asID bool) chatLogprob {
	raw := s.cfg.Tokenizer.TokenBytes(id)
	bytes := make([]int, len(raw))
	for i, b := range raw {
		bytes[i] = int(b)
	}
	return chatLogprob{Token: s.tokenText(id, asID), Logprob: logprob(logit, sum), Bytes: bytes}
}

// chatLogprob makes the entry of one event.
func (s *Server) chatLogprob(e *worker.Event, probes []int32, asID bool) chatLogprob {
	c := &e.Chosen
	out := s.chatEntry(c.Token, c.Logit, c.LogSumExp, asID)
	out.Top = []chatLogprob{}
	for _, t := range candidates(c, probes) {
		out.Top = append(out.Top, s.chatEntry(t.Token, t.Logit, c.LogSumExp, asID))
	}
	return out
}

// candidates lists the tokens whose logprobs come with one: itself and those
// asked for by id; or else as many as asked for, itself first if it was not
// among the likeliest.
func candidates(c *kernels.Choice, probes []int32) []kernels.Candidate {
	list := []kernels.Candidate{{Token: c.Token, Logit: c.Logit}}
	for i, id := range probes {
		if id != c.Token {
			list = append(list, kernels.Candidate{Token: id, Logit: c.Probe[i]})
		}
	}
	if len(probes) > 0 {
		return list
	}
	for _, t := range c.Top {
		if t.Token == c.Token {
			return c.Top
		}
	}
	return append(list, c.Top...)[:len(c.Top)]
}

// textLogprobs are those of a completion, as parallel lists.
type textLogprobs struct {
	Offsets []int                `json:"text_offset"`
	Values  []*float64           `json:"token_logprobs"`
	Tokens  []string             `json:"tokens"`
	Top     []map[string]float64 `json:"top_logprobs"`
	next    int                  // offset of the next token's text
}

// add appends one token; c nil is the first token of a prompt, which nothing
// foretells.
func (l *textLogprobs) add(s *Server, id int32, c *kernels.Choice, probes []int32, asID bool) {
	name := s.tokenText(id, asID)
	l.Offsets = append(l.Offsets, l.next)
	l.Tokens = append(l.Tokens, name)
	l.next += utf8.RuneCountInString(s.tokenText(id, false))
	if c == nil {
		l.Values, l.Top = append(l.Values, nil), append(l.Top, nil)
		return
	}
	v := logprob(c.Logit, c.LogSumExp)
	top := map[string]float64{name: v}
	for _, t := range likeliest(c, probes) {
		top[s.tokenText(t.Token, asID)] = logprob(t.Logit, c.LogSumExp)
	}
	l.Values, l.Top = append(l.Values, &v), append(l.Top, top)
}

// likeliest are the candidates that a completion shows besides the token: those
// asked for by id, or else the likeliest.
func likeliest(c *kernels.Choice, probes []int32) []kernels.Candidate {
	if len(probes) > 0 {
		return candidates(c, probes)
	}
	return c.Top
}

// promptLogprob is one candidate of a prompt position.
type promptLogprob struct {
	Logprob float64 `json:"logprob"`
	Rank    int     `json:"rank"`
	Decoded string  `json:"decoded_token"`
}

// promptLogprobs has an entry for each prompt token; the first is null.
func (s *Server) promptLogprobs(prompt []int32, rows []worker.PromptRow) []map[string]promptLogprob {
	out := make([]map[string]promptLogprob, len(prompt))
	for _, row := range rows {
		c := row.Choice
		m := map[string]promptLogprob{}
		for rank, t := range c.Top {
			m[fmt.Sprint(t.Token)] = promptLogprob{logprob(t.Logit, c.LogSumExp), rank + 1, s.tokenText(t.Token, false)}
		}
		id := prompt[row.Position]
		m[fmt.Sprint(id)] = promptLogprob{logprob(c.Logit, c.LogSumExp), int(c.Rank), s.tokenText(id, false)}
		out[row.Position] = m
	}
	return out
}
