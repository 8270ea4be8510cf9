package tokenizer

// A model turns one piece of text into tokens.
type model interface {
	encode(ids []int32, piece string, sc *scratch) []int32
}
