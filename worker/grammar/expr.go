package grammar

import "fmt"

// expr is a part of a rule: what text it matches.
type expr interface{}

type (
	// bytesExpr matches these bytes.
	bytesExpr string
	// setExpr matches one byte of a set.
	setExpr *byteSet
	// seqExpr matches its parts one after the other.
	seqExpr []expr
	// altExpr matches one of its parts; none of them: nothing matches.
	altExpr []expr
	// repExpr matches x min to max times, without bound if max is -1.
	repExpr struct {
		x        expr
		min, max int
	}
	// ruleExpr matches a rule, by its number.
	ruleExpr int
	// graphExpr matches a way from its first node to one that is final.
	graphExpr []graphNode
)

type graphNode struct {
	final bool
	edges []graphEdge
}

// graphEdge takes x, which is never empty, and goes on at node to.
type graphEdge struct {
	x  expr
	to int
}

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) add(lo, hi byte) {
	for c := int(lo); c <= int(hi); c++ {
		s[c>>6] |= 1 << (c & 63)
	}
}

func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

// byteRange returns the set of bytes from lo to hi.
func byteRange(lo, hi byte) *byteSet {
	s := &byteSet{}
	s.add(lo, hi)
	return s
}

func optional(x expr) expr { return repExpr{x, 0, 1} }

// program is a set of rules; the first is where a text begins.
type program struct {
	rules []expr
	size  int // parts made so far, to bound what a specification can ask for
}

// maxParts bounds the parts of a program.
const maxParts = 400_000

// LimitError is returned for a specification that asks for too much.
type LimitError struct{ What string }

func (e *LimitError) Error() string { return "the grammar is too large: " + e.What }

// newRule returns the number of a rule that is filled in later.
func (p *program) newRule() int {
	p.rules = append(p.rules, nil)
	return len(p.rules) - 1
}

// specError is what builders throw; Compile recovers it.
type specError struct{ err error }

func failf(format string, args ...any) { panic(specError{fmt.Errorf(format, args...)}) }

// spend counts parts.
func (p *program) spend(n int) {
	if p.size += n; p.size > maxParts {
		panic(specError{&LimitError{fmt.Sprintf("more than %d parts", maxParts)}})
	}
}
