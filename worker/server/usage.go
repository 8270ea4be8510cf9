package server

// usage is the account that ends an answer.
type usage struct {
	Prompt     int            `json:"prompt_tokens"`
	Total      int            `json:"total_tokens"`
	Completion int            `json:"completion_tokens"`
	Details    *promptDetails `json:"prompt_tokens_details,omitempty"`
	Output     *outputDetails `json:"completion_tokens_details,omitempty"`
}

type promptDetails struct {
	Cached int `json:"cached_tokens"`
}

type outputDetails struct {
	Reasoning int `json:"reasoning_tokens"`
}

func (j *job) usage() *usage {
	u := &usage{Prompt: j.prompt, Completion: j.generated, Total: j.prompt + j.generated}
	if j.s.cfg.PromptTokensDetails || j.fromUs {
		u.Details = &promptDetails{j.cached}
	}
	return u
}

// usageAtEnd says that a stream ends with its account.
func (j *job) usageAtEnd() bool {
	o := j.fields.StreamOptions
	return j.s.cfg.ForceUsage || o != nil && o.IncludeUsage
}

// usageInAll says that every event carries the account so far.
func (j *job) usageInAll() bool {
	o := j.fields.StreamOptions
	return o != nil && o.IncludeUsage && o.ContinuousUsage
}

// end ends a stream that went well, with the account where it was asked for.
func (j *job) end(ev *events, account any) {
	if j.usageAtEnd() && ev.send(account) != nil {
		return
	}
	ev.done()
}
