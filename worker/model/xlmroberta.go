package model

// xlmRobertaEmbed is BERT whose positions count from the padding token's id on.
func xlmRobertaEmbed(g *graph) {
	root := ""
	if g.has("roberta.embeddings.word_embeddings.weight") {
		root = "roberta."
	}
	g.output(g.encode(encoder{root: root, shift: g.xlmRobertaShift()}))
}

// xlmRobertaScore is the same with a classifier.
func xlmRobertaScore(g *graph) {
	g.classify(g.encode(encoder{root: "roberta.", shift: g.xlmRobertaShift()}), "classifier.dense", "classifier.out_proj")
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
