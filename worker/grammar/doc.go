// Package grammar holds a model's output to a form: a JSON schema, any JSON
// object, a regular expression, one of several choices, a grammar in EBNF or
// Lark, or a structural tag.
//
// A Spec is compiled to rules over bytes, each a small automaton that may
// call other rules. A Matcher is a place in them: a set of automaton states,
// each with the stack of rules to return to. Before each step Mask says which
// tokens of the vocabulary may come next, and after it Advance takes the one
// that was sampled.
//
// Masks are quick because most of a mask does not depend on the stack. For
// each automaton state the tokens that stay within its rule are found once,
// in one walk over a trie of the vocabulary, together with the places in the
// trie where the rule ends; only from those places does a mask look into the
// rules around. What is inside a JSON string, the largest walk, is done while
// compiling.
//
// Every state knows a shortest completion. Mask is told how many tokens may
// still come, and leaves out every token after which the completion would
// not fit, so that an output is valid also when it ends for length. A budget
// that is too small from the start is an error for the client: compare it with
// MinTokens.
//
// Compile takes outside input. Its work is bounded by counts of states, not
// by a clock, so that a specification is refused or taken alike on every
// machine.
package grammar
