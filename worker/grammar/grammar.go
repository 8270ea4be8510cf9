package grammar

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Spec says what form an output must have. Exactly one of JSONSchema,
// JSONObject, Calls, Regex, Choice and EBNF is set.
type Spec struct {
	// JSONSchema is a JSON schema. Properties come in the order in which the
	// schema names them. An object that names properties has no others,
	// unless additionalProperties says so.
	JSONSchema []byte

	// JSONObject asks for any JSON object.
	JSONObject bool

	// Calls are the tools of which an output calls some, as a JSON array of
	// objects with name and parameters: what tool_choice "required" asks for.
	// With OneCall the array has one.
	Calls   []Call
	OneCall bool

	// Regex is a regular expression for the whole output.
	Regex string

	// Choice are the texts of which the output is one.
	Choice []string

	// EBNF is a grammar in the notation of GBNF, whose rule root is the
	// output.
	EBNF string

	// Lark is a grammar in the notation of Lark, whose rule start is the
	// output.
	Lark string

	// Tag is a structural tag, as JSON: texts that begin with given tags go on
	// in given forms.
	Tag []byte

	// Compact leaves no white space in JSON but ", " and ": ". Without it
	// single spaces, and line breaks with indentation, are allowed between
	// the parts.
	Compact bool
}

// Call is a tool that may be called.
type Call struct {
	Name string

	// Parameters is the JSON schema of its arguments. Without one, any object
	// will do.
	Parameters []byte
}

// ErrSpec is returned, with the reason, for a specification that is wrong or
// not supported: a mistake of whoever sent it.
var ErrSpec = errors.New("the output format cannot be used")

// Grammar is a compiled Spec. Several goroutines may use it.
type Grammar struct {
	vocab *Vocab
	begin *place

	mu     sync.Mutex
	masker *masker
}

// warmNodes bounds the work on masks that Compile does ahead, in nodes of the
// vocabulary's trie: some tens of milliseconds.
const warmNodes = 8_000_000

// Compile compiles a specification for a vocabulary. Errors wrap ErrSpec, and
// a *LimitError where it asks for too much.
func Compile(spec Spec, v *Vocab) (g *Grammar, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case specError:
			g, err = nil, fmt.Errorf("%w: %w", ErrSpec, x.err)
		default:
			panic(x)
		}
	}()
	a := newAutomaton(spec.program())
	a.checkLeftRecursion()
	s := newShortest(a)
	if s.rule[0] >= never {
		failf("no text fits it")
	}
	m := newMasker(newMachine(a, s), v)
	g = &Grammar{vocab: v, begin: m.begin(0), masker: m}
	if n := m.tokensOf(g.begin); n >= never {
		failf("the vocabulary has no tokens to spell it")
	}
	m.warm()
	return g, nil
}

// MinTokens returns how many tokens an output takes, at least; an estimate
// from above.
func (g *Grammar) MinTokens() int { return g.Start().MinTokens() }

// program builds the rules of a specification.
func (s Spec) program() *program {
	set := 0
	for _, is := range []bool{len(s.JSONSchema) > 0, s.JSONObject, len(s.Calls) > 0, s.Regex != "", len(s.Choice) > 0, s.EBNF != "", s.Lark != "", len(s.Tag) > 0} {
		if is {
			set++
		}
	}
	if set != 1 {
		failf("exactly one of json, json_object, calls, regex, choice, grammar and structural_tag may be given; found %d", set)
	}
	p := &program{}
	p.newRule()
	switch {
	case s.JSONObject:
		p.rules[0] = newJSONRules(p, s.Compact).anyObject()
	case len(s.JSONSchema) > 0:
		p.rules[0] = buildSchema(p, s.JSONSchema, s.Compact)
	case len(s.Calls) > 0:
		p.rules[0] = buildCalls(p, s)
	case s.Regex != "":
		b := &regexBuilder{p: p, what: "the regular expression", char: runeRanges}
		p.rules[0] = b.build(s.Regex, false)
	case s.EBNF != "":
		p.rules[0] = buildEBNF(p, s.EBNF)
	case s.Lark != "":
		p.rules[0] = buildLark(p, s.Lark)
	case len(s.Tag) > 0:
		p.rules[0] = buildTag(p, s.Tag, s.Compact)
	default:
		p.rules[0] = choices(p, s.Choice)
	}
	return p
}

// maxChoices bounds the number of choices.
const maxChoices = 10_000

func choices(p *program, texts []string) expr {
	if len(texts) > maxChoices {
		failf("there are %d choices; at most %d are allowed", len(texts), maxChoices)
	}
	var alts altExpr
	for i, t := range texts {
		if t == "" || strings.ToValidUTF8(t, "") != t {
			failf("choice %d is empty or not UTF-8", i)
		}
		p.spend(len(t))
		alts = append(alts, bytesExpr(t))
	}
	return alts
}

// checkLeftRecursion refuses a rule that can call itself before it has
// consumed a byte: it would never get on.
func (a *automaton) checkLeftRecursion() {
	nullable := a.nullable()
	const (
		open = 1
		done = 2
	)
	mark := make([]uint8, len(a.starts))
	var visit func(rule int32, depth int)
	visit = func(rule int32, depth int) {
		mark[rule] = open
		for _, called := range a.calledFirst(rule, nullable) {
			if mark[called] == open {
				failf("a rule begins with itself (left recursion); write a repetition instead")
			}
			if depth > 10_000 {
				panic(specError{&LimitError{"rules begin with each other more than 10000 deep"}})
			}
			if mark[called] == 0 {
				visit(called, depth+1)
			}
		}
		mark[rule] = done
	}
	for r := range a.starts {
		if mark[r] == 0 {
			visit(int32(r), 0)
		}
	}
}

// nullable returns which rules match the empty text.
func (a *automaton) nullable() []bool {
	null := make([]bool, len(a.starts))
	for changed := true; changed; {
		changed = false
		for r := range a.starts {
			if null[r] {
				continue
			}
			a.reach(int32(r), null, func(s *state) {
				if s.kind == kindEnd {
					null[r], changed = true, true
				}
			})
		}
	}
	return null
}

// calledFirst returns the rules that a rule may call before any byte.
func (a *automaton) calledFirst(rule int32, null []bool) []int32 {
	var out []int32
	a.reach(rule, null, func(s *state) {
		if s.kind == kindCall {
			out = append(out, s.rule)
		}
	})
	return out
}

// reach visits the states of a rule that are reached before any byte.
func (a *automaton) reach(rule int32, null []bool, visit func(*state)) {
	seen := map[int32]bool{}
	todo := []int32{a.starts[rule]}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		s := &a.states[at]
		visit(s)
		switch {
		case s.kind == kindFork:
			todo = append(todo, s.to, s.or)
		case s.kind == kindCall && null[s.rule]:
			todo = append(todo, s.to)
		}
	}
}

// warm finds the local masks of states that take many bytes, whose walks are
// long, so that no decoding step has to.
func (m *masker) warm() {
	m.walked = 0
	for i := range m.a.states {
		if m.walked > warmNodes || m.bytes > maxBytes/2 {
			return
		}
		s := &m.a.states[i]
		if s.kind != kindByte || m.short.cost[i] >= never {
			continue
		}
		many := 0
		for c := 'A'; c <= 'z'; c++ {
			if s.set.has(byte(c)) {
				many++
			}
		}
		if many >= 20 {
			m.local(int32(i))
		}
	}
}
