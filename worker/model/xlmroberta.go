package model

import "slices"

// xlmRobertaEmbed is BERT whose positions count from the padding token's id on.
func xlmRobertaEmbed(g *graph) {
	root := ""
	if g.has("roberta.embeddings.word_embeddings.weight") {
		root = "roberta."
	}
	g.output(g.encode(encoder{root: root, shift: g.xlmRobertaShift(), pads: g.Pad != nil}))
}

// xlmRobertaScore is the same with a classifier.
func xlmRobertaScore(g *graph) {
	g.classify(g.encode(encoder{root: "roberta.", shift: g.xlmRobertaShift(), pads: g.Pad != nil}), "classifier.dense", "classifier.out_proj")
}

// xlmRobertaPadding is the token that takes no position, and has a row of the
// table of its own.
func (s *settings) xlmRobertaPadding() *int32 {
	if s.Pad == nil {
		return nil
	}
	id := int32(*s.Pad)
	return &id
}

// Positions are those of a text's tokens where they do not simply count from 0 on;
// nil: they do. In XLM-RoBERTa padding inside a text takes none: all of it has the
// last row of the table, and the tokens behind it count on from those before.
func (c Config) Positions(tokens []int32) []int32 {
	if c.Padding == nil || !slices.Contains(tokens, *c.Padding) {
		return nil
	}
	out := make([]int32, len(tokens))
	next := int32(0)
	for i, id := range tokens {
		if out[i] = next; id == *c.Padding {
			out[i] = int32(c.positionRows)
			continue
		}
		next++
	}
	return out
}

// xlmRobertaShift is the row of the first position.
func (s *settings) xlmRobertaShift() int {
	if s.Pad == nil {
		return 1
	}
	return *s.Pad + 1
}

func xlmRobertaDefaults(s *settings) {
	bertDefaults(s)
	s.Pad = integer(1)
}

// xlmRobertaPositions takes the rows before the first position off the count.
func xlmRobertaPositions(s *settings) {
	encoderEps(s)
	if s.Pad != nil && (*s.Pad < 0 || *s.Pad >= s.MaxPositions) {
		s.MaxPositions = 0 // told by the check of bounds
		return
	}
	s.MaxPositions -= s.xlmRobertaShift()
}
