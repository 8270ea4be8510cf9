package launch

import "maps"

// tokenizerInfo is the answer of /tokenizer_info: the tokenizer's configuration without
// paths of files, and with the chat template in use; nil unless it was asked for.
func (o *Options) tokenizerInfo(w *textFiles) map[string]any {
	if !o.TokenizerInfo {
		return nil
	}
	info := map[string]any{"bos_token": nilOr(w.bos), "eos_token": nilOr(w.eos)}
	maps.Copy(info, w.info)
	delete(info, "vocab_file")
	delete(info, "merges_file")
	for name, v := range info {
		info[name] = spelled(v)
	}
	if w.source != "" {
		info["chat_template"] = w.source
	}
	return info
}

// spelled has a token's spelling in place of each object that describes a token.
func spelled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if content, ok := v["content"]; ok {
			return content
		}
		out := map[string]any{}
		for name, inner := range v {
			out[name] = spelled(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = spelled(inner)
		}
		return out
	}
	return v
}

func nilOr(s string) any {
	if s == "" {
		return nil
	}
	return s
}
