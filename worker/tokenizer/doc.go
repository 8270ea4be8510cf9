// Package tokenizer turns text into token ids and back, as the file
// tokenizer.json of a model says, or the header of its GGUF file.
//
// A text passes five stages. Added tokens (the special ones, such as
// <|im_start|>, and others) are cut out first, because nothing may change
// them. What lies between is normalised (Unicode forms, replacements), cut
// into pieces (the pre-tokenizer: words, numbers, runs of spaces), and each
// piece becomes tokens (the model: BPE, Unigram, WordPiece or a plain list of
// words). The post-processor adds what stands around a sequence, such as
// <s>. Every stage gives what the tokenizers library of Hugging Face gives;
// testdata holds its answers and the scripts that asked for them.
//
// Text that a user wrote must not become control tokens: whoever writes
// <|im_end|> into a message would otherwise end it. Therefore a text is a
// list of segments. Special tokens are read in what the model's own chat
// template says, and in the content that was filled into it they are encoded
// as the plain characters they are. Text without such characters, which is
// all honest text, gives the same tokens either way.
//
// A Tokenizer is immutable after Load, and all its methods may be called from
// many goroutines at once. A Decoder belongs to one stream.
//
// Files are outside input. Load checks sizes, ids and references, and no
// pattern in a file can make Encode slow: patterns that are known have
// scanners of their own, any other runs on a matcher whose work is bounded by
// the pattern's length times the text's.
package tokenizer
