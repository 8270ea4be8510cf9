package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"roundhouse/worker/model"
	"roundhouse/worker/tokenizer"
	"roundhouse/worker/weights"
)

// The fields by which vLLM's users make a classifier of a model that generates,
// in --hf-overrides.
const (
	classifierTokens = "classifier_from_token"
	originalReranker = "is_original_qwen3_reranker"
)

// openAs opens a model with the fields of --hf-overrides. A Qwen3 that
// generates is opened as the reranker that it is when --task asks for scores.
func openAs(o *Options, dir string) (*model.Model, error) {
	if o.Verify {
		if err := weights.Verify(dir); err != nil {
			return nil, fmt.Errorf("--verify-weights: %s: %w", dir, err)
		}
	}
	over, err := answerTokens(o.Config, os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("--hf-overrides: %w", err)
	}
	m, err := model.OpenWith(dir, over)
	if err != nil || o.Task != "score" && o.Task != "classify" || len(o.Config) > 0 || m.GGUF() != nil {
		return m, err
	}
	if c := m.Config(); c.Kind != model.Generate || c.Architecture != "Qwen3ForCausalLM" {
		return m, nil
	}
	over, err = answerTokens(rerankerOverrides(), os.DirFS(dir))
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if err := m.Close(); err != nil {
		return nil, err
	}
	return model.OpenWith(dir, over)
}

// rerankerOverrides are those that Qwen3-Reranker is served with.
func rerankerOverrides() model.Overrides {
	return model.Overrides{"architectures": []byte(`["Qwen3ForSequenceClassification"]`),
		classifierTokens: []byte(`["no","yes"]`), originalReranker: []byte(`true`)}
}

// answerTokens turns the two tokens of classifier_from_token into ids.
func answerTokens(over model.Overrides, folder fs.FS) (model.Overrides, error) {
	raw, ok := over[classifierTokens]
	if !ok {
		return over, nil
	}
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil || len(names) != 2 {
		return nil, fmt.Errorf(`%s is %.80s; want the token for no and the one for yes, as ["no","yes"]`, classifierTokens, raw)
	}
	w, err := loadTextFiles(folder, "the model", "")
	if err != nil {
		return nil, err
	}
	ids := make([]int32, 2)
	for i, name := range names {
		if ids[i], ok = w.tokenizer.TokenID(name); !ok {
			return nil, fmt.Errorf("%s: the tokenizer has no token %.40q", classifierTokens, name)
		}
	}
	data, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	out := model.Overrides{"answer_token_ids": data}
	for field, value := range over {
		if field != classifierTokens && field != originalReranker {
			out[field] = value
		}
	}
	return out, nil
}

// What Qwen3-Reranker was trained to answer, by its model card.
const (
	rerankBefore      = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n"
	rerankAfter       = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
	rerankInstruction = "Given a web search query, retrieve relevant passages that answer the query"
)

// pairOf is how a model that scores reads a query and a document; nil: as the
// tokenizer joins two texts. Clients of vLLM write Qwen3-Reranker's prompt
// themselves, half of it into the query and half into the documents: these
// pairs are taken as they are.
func pairOf(c model.Config) func(query, document, instruction string) []tokenizer.Segment {
	if c.Architecture != "Qwen3ForSequenceClassification" || c.Labels != 1 {
		return nil
	}
	return func(query, document, instruction string) []tokenizer.Segment {
		if strings.HasPrefix(query, "<|im_start|>") {
			return []tokenizer.Segment{{Text: query + document}}
		}
		if instruction == "" {
			instruction = rerankInstruction
		}
		return []tokenizer.Segment{
			{Text: rerankBefore + "<Instruct>: "}, {Text: instruction, Content: true},
			{Text: "\n<Query>: "}, {Text: query, Content: true},
			{Text: "\n<Document>: "}, {Text: document, Content: true}, {Text: rerankAfter},
		}
	}
}
