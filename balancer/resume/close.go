package resume

// Close ends an answer whose worker has died between its last token and the end
// mark: the missing rest is put behind what o holds. It reports false where that
// rest is not known.
func (s *Stream) Close(o *Out) bool {
	if !s.Ended() {
		return false
	}
	if s.a.API == Messages || s.a.API == Responses || s.done {
		return true
	}
	if s.a.Peek.IncludeUsage && !s.counted && !s.got.Refused {
		prompt, generated := s.prompts(), s.Tokens()
		if prompt == 0 || generated == 0 {
			return false
		}
		object := "chat.completion.chunk"
		if s.a.API == Text {
			object = "text_completion"
		}
		name := s.a.Name
		if name == "" {
			name = s.a.Model
		}
		o.B = append(append(append(o.B, "data: "...), mustJSON(struct {
			ID      string     `json:"id"`
			Object  string     `json:"object"`
			Created int64      `json:"created"`
			Model   string     `json:"model"`
			Choices []struct{} `json:"choices"`
			Usage   totals     `json:"usage"`
		}{s.id, object, s.created, name, []struct{}{}, totals{prompt, prompt + generated, generated}})...), "\n\n"...)
		s.counted = true
	}
	o.B = append(o.B, "data: [DONE]\n\n"...)
	s.done = true
	return true
}

// totals is a usage as the door writes it.
type totals struct {
	Prompt     int64 `json:"prompt_tokens"`
	Total      int64 `json:"total_tokens"`
	Completion int64 `json:"completion_tokens"`
}

// prompts is how many tokens the prompts have, where the worker said their ids.
func (s *Stream) prompts() (n int64) {
	for i := 0; i < len(s.choices); i += s.each() {
		n += int64(len(s.choices[i].prompt))
	}
	return n
}
