package launch

import (
	"container/list"
	"fmt"
	"sync"

	"roundhouse/worker"
	"roundhouse/worker/grammar"
	"roundhouse/worker/server"
	"roundhouse/worker/tokenizer"
)

// maxCompiled bounds the forms that are kept ready.
const maxCompiled = 64

// compiler makes forms ready, and keeps those that were used last.
type compiler struct {
	vocab   *grammar.Vocab
	compact bool // JSON has no white space, whatever a form says

	mu    sync.Mutex
	ready map[string]*list.Element // of *compiled
	used  *list.List               // last used first
}

// newCompiler prepares a vocabulary of size tokens.
func newCompiler(t *tokenizer.Tokenizer, size int, ends []int32) *compiler {
	tokens := make([][]byte, size)
	for id := range min(size, t.Size()) {
		if !t.IsSpecial(int32(id)) {
			tokens[id] = t.TokenBytes(int32(id))
		}
	}
	return &compiler{vocab: grammar.NewVocab(tokens, ends), ready: map[string]*list.Element{}, used: list.New()}
}

// compiled is a form that is ready.
type compiled struct {
	key     string
	grammar *grammar.Grammar
}

// MinTokens implements server.Compiled.
func (c *compiled) MinTokens() int { return c.grammar.MinTokens() }

// Guide implements server.Compiled.
func (c *compiled) Guide() worker.Guide { return guide{c.grammar.Start()} }

// guide is a matcher as the engine calls it.
type guide struct{ *grammar.Matcher }

// Accept implements worker.Guide.
func (g guide) Accept(token int32) bool { return g.Advance(token) == nil }

// compile makes a form ready.
func (c *compiler) compile(f server.Form) (server.Compiled, error) {
	key := fmt.Sprintf("%d %v %v %q %q %q %q", f.Kind, f.Compact, f.OneCall, f.Schema, f.Text, f.Choices, f.Calls)
	c.mu.Lock()
	if e, ok := c.ready[key]; ok {
		c.used.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(*compiled), nil
	}
	c.mu.Unlock()
	f.Compact = f.Compact || c.compact
	g, err := grammar.Compile(specOf(f), c.vocab)
	if err != nil {
		return nil, err
	}
	out := &compiled{key, g}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.ready[key]; !ok {
		c.ready[key] = c.used.PushFront(out)
	}
	if c.used.Len() > maxCompiled {
		last := c.used.Back()
		delete(c.ready, last.Value.(*compiled).key)
		c.used.Remove(last)
	}
	return out, nil
}

func specOf(f server.Form) grammar.Spec {
	s := grammar.Spec{Compact: f.Compact}
	switch f.Kind {
	case server.FormSchema:
		s.JSONSchema = f.Schema
	case server.FormObject:
		s.JSONObject = true
	case server.FormRegex:
		s.Regex = f.Text
	case server.FormChoice:
		s.Choice = f.Choices
	case server.FormGrammar:
		if grammar.LikelyLark(f.Text) {
			s.Lark = f.Text
		} else {
			s.EBNF = f.Text
		}
	case server.FormTag:
		s.Tag = []byte(f.Text)
	case server.FormCalls:
		s.OneCall = f.OneCall
		for _, c := range f.Calls {
			s.Calls = append(s.Calls, grammar.Call{Name: c.Name, Parameters: c.Parameters})
		}
	}
	return s
}
