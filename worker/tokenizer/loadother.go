package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
)

// unigramFile is the part "model" of type Unigram.
type unigramFile struct {
	UnkID        *int32       `json:"unk_id"`
	Vocab        []scoredFile `json:"vocab"`
	ByteFallback bool         `json:"byte_fallback"`
}

// scoredFile is a token with its score, as ["▁the", -3.2].
type scoredFile struct {
	text  string
	score float64
}

func (s *scoredFile) UnmarshalJSON(data []byte) error {
	pair := []any{&s.text, &s.score}
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a token is [text, score]; found %d entries", len(pair))
	}
	return nil
}

func loadUnigram(raw json.RawMessage) (*unigram, map[string]int32, error) {
	var f unigramFile
	if err := decodeField(raw, "model", &f); err != nil {
		return nil, nil, err
	}
	if len(f.Vocab) == 0 || len(f.Vocab) > maxTokens {
		return nil, nil, fmt.Errorf("tokenizer.json: model.vocab has %d tokens; 1 to %d are allowed", len(f.Vocab), maxTokens)
	}
	if f.UnkID == nil || *f.UnkID < 0 || int(*f.UnkID) >= len(f.Vocab) {
		return nil, nil, fmt.Errorf("tokenizer.json: model.unk_id is absent or outside the vocabulary of %d tokens", len(f.Vocab))
	}
	u := &unigram{
		ids: make(map[string]int32, len(f.Vocab)), scores: make([]float64, len(f.Vocab)), cache: newWordCache(),
		unknown: *f.UnkID, hasUnknown: true, byteFallback: f.ByteFallback, worst: math.Inf(1),
	}
	for i := range u.bytes {
		u.bytes[i] = -1
	}
	total := 0
	for id, tok := range f.Vocab {
		if len(tok.text) > maxToken {
			return nil, nil, fmt.Errorf("tokenizer.json: model.vocab[%d] has %d bytes; at most %d are allowed", id, len(tok.text), maxToken)
		}
		if first, ok := u.ids[tok.text]; ok {
			return nil, nil, fmt.Errorf("tokenizer.json: model.vocab[%d] is %q, as is model.vocab[%d]", id, clip(tok.text), first)
		}
		if math.IsNaN(tok.score) || math.IsInf(tok.score, 0) {
			return nil, nil, fmt.Errorf("tokenizer.json: model.vocab[%d]: the score is %g", id, tok.score)
		}
		u.ids[tok.text] = int32(id)
		u.scores[id] = tok.score
		u.worst = min(u.worst, tok.score)
		if c, ok := byteToken(tok.text); ok {
			u.bytes[c] = int32(id)
		}
		total += len(tok.text)
	}
	u.worst -= unknownPenalty
	u.trie = newByteTrie(total + 1)
	for id, tok := range f.Vocab {
		if tok.text != "" {
			u.trie.add(tok.text, int32(id))
		}
	}
	return u, u.ids, nil
}

// wordsFile is the part "model" of types WordPiece and WordLevel.
type wordsFile struct {
	UnkToken string           `json:"unk_token"`
	Prefix   *string          `json:"continuing_subword_prefix"`
	Most     *int             `json:"max_input_chars_per_word"`
	Vocab    map[string]int32 `json:"vocab"`
}

func loadWords(raw json.RawMessage) (*wordsFile, error) {
	var f wordsFile
	if err := decodeField(raw, "model", &f); err != nil {
		return nil, err
	}
	if len(f.Vocab) == 0 || len(f.Vocab) > maxTokens {
		return nil, fmt.Errorf("tokenizer.json: model.vocab has %d tokens; 1 to %d are allowed", len(f.Vocab), maxTokens)
	}
	return &f, nil
}

func loadWordPiece(raw json.RawMessage) (*wordPiece, map[string]int32, error) {
	f, err := loadWords(raw)
	if err != nil {
		return nil, nil, err
	}
	unknown, ok := f.Vocab[f.UnkToken]
	if !ok {
		return nil, nil, fmt.Errorf("tokenizer.json: model.unk_token %q is not in model.vocab", clip(f.UnkToken))
	}
	w := &wordPiece{vocab: f.Vocab, prefix: "##", most: 100, unknown: unknown}
	if f.Prefix != nil {
		w.prefix = *f.Prefix
	}
	if f.Most != nil {
		w.most = min(max(*f.Most, 0), 1000)
	}
	for s := range f.Vocab {
		w.longest = max(w.longest, len(s))
	}
	return w, f.Vocab, nil
}

func loadWordList(raw json.RawMessage) (*wordList, map[string]int32, error) {
	f, err := loadWords(raw)
	if err != nil {
		return nil, nil, err
	}
	w := &wordList{vocab: f.Vocab}
	w.unknown, w.hasUnknown = f.Vocab[f.UnkToken]
	return w, f.Vocab, nil
}
