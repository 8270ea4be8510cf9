package tokenizer

// latticeNode is the best way to cut a text up to some place.
type latticeNode struct {
	from  int32   // where its last token begins
	id    int32   // its last token
	score float64 // of the whole way
}
