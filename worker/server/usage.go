package server

// usage is the account that ends an answer.
type usage struct {
	Prompt     int            `json:"prompt_tokens"`
	Total      int            `json:"total_tokens"`
	Completion int            `json:"completion_tokens"`
	Details    *promptDetails `json:"prompt_tokens_details"`
	Output     *outputDetails `json:"completion_tokens_details"`
}

type promptDetails struct {
	Cached     int `json:"cached_tokens"`
	Written    int `json:"created_cache_tokens"`
	Multimodal any `json:"multimodal_tokens"`
}

type outputDetails struct {
	Reasoning int `json:"reasoning_tokens"`
}

func (j *job) usage() *usage {
	u := &usage{Prompt: j.prompt, Completion: j.generated, Total: j.prompt + j.generated}
	if j.s.cfg.PromptTokensDetails || j.fromUs {
		u.Details = &promptDetails{Cached: j.cached, Written: j.writtenToCache(), Multimodal: j.seen()}
	}
	return u
}

// writtenToCache is how many of the prompt's tokens were put into the prefix
// cache: whole blocks, but for those that were there.
func (j *job) writtenToCache() int {
	c := j.s.cfg.Engine.Config()
	if !c.PrefixCache || len(c.Groups) == 0 {
		return 0
	}
	n := 0
	for _, r := range j.reqs {
		n += len(r.Tokens) / c.Groups[0].BlockTokens * c.Groups[0].BlockTokens
	}
	return max(0, n-j.cached)
}

// streamUsage is the account at the end of a stream, which has only what there
// is.
type streamUsage struct {
	Prompt     int            `json:"prompt_tokens"`
	Total      int            `json:"total_tokens"`
	Completion int            `json:"completion_tokens"`
	Details    *promptDetails `json:"prompt_tokens_details,omitempty"`
	Output     *outputDetails `json:"completion_tokens_details,omitempty"`
}

func (u *usage) atEnd() *streamUsage { return (*streamUsage)(u) }

// soFar is the account that an event of a completion's choice carries.
func soFar(prompt, tokens int) *streamUsage {
	return &streamUsage{Prompt: prompt, Total: prompt + tokens, Completion: tokens}
}

// chatSoFar is that of a chat's stream, which tells of thoughts.
type chatSoFar struct {
	Prompt     int            `json:"prompt_tokens"`
	Total      int            `json:"total_tokens"`
	Completion int            `json:"completion_tokens"`
	Output     *outputDetails `json:"completion_tokens_details"`
}

// usageAtEnd reports whether a stream ends with its account.
func (j *job) usageAtEnd() bool {
	o := j.fields.StreamOptions
	return j.s.cfg.ForceUsage || o != nil && o.IncludeUsage
}

// usageInAll reports whether every event carries the account so far.
func (j *job) usageInAll() bool {
	o := j.fields.StreamOptions
	return j.s.cfg.ForceUsage || o != nil && o.IncludeUsage && o.ContinuousUsage
}

// end ends a stream that went well, with the account where it was asked for.
func (j *job) end(ev *events, account any) {
	if j.usageAtEnd() && ev.send(account) != nil {
		return
	}
	ev.done()
}
