package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"roundhouse/worker/api"
)

// answer is one answer of a Worker under way.
type answer struct {
	w    *Worker
	b    *body
	rw   http.ResponseWriter
	r    *http.Request
	chat bool

	id      string
	created int64
	prompt  int // tokens
	from    int // the first word to send
	until   int
	booked  int64
	held    string          // text that may be the beginning of the stop string
	tokens  <-chan struct{} // of a worker that computes as vLLM does
	over    <-chan struct{} // closed when its worker is terminated
	aborted bool            // for it was
	adapter string          // that it is of; empty: the model's own
}

func (a *answer) run(size int) {
	w := a.w
	a.id, a.created = fmt.Sprintf("cmpl-%d", w.Served.Load()), time.Now().Unix()
	a.prompt = size/4 + 1
	a.until = w.Words
	if a.until == 0 {
		a.until = 20
	}
	if w.Speed != nil {
		a.asked()
	}
	if m := a.b.MaxTokens; m > 0 && m < a.until {
		a.until = m
	}
	if res := a.b.Resume; res != nil {
		a.id, a.created, a.from = res.ID, res.Created, len(res.TokenIDs)
	}
	if !a.adapted() {
		return
	}
	if !a.fromIDs() {
		a.rw.Header().Set("Content-Type", "application/json")
		a.rw.WriteHeader(400)
		fmt.Fprintf(a.rw, `{"error":{"message":"%d tokens of prompt and %d of output are more than %d","type":"BadRequestError","param":null,"code":400}}`, a.prompt, a.b.MaxTokens, w.context())
		return
	}
	if l := w.computes(); l != nil {
		var s *Sequence
		var pieces []uint64
		if w.Caches {
			pieces = piecesOf(a.b.Prompt)
		}
		s, a.tokens = l.add(a.prompt, a.until-a.from, pieces)
		defer l.remove(s)
	}
	a.book(int64(a.prompt + a.from))
	defer a.unbook()
	if a.tokens == nil && !a.sleep(w.Prefill) {
		return
	}
	w.prompt.Add(int64(a.prompt))
	if a.b.Stream {
		a.stream()
		return
	}
	a.whole()
}

// fromIDs goes on behind a prompt of token ids that ends in words of an answer.
// It reports whether that and what may follow fit into the context.
func (a *answer) fromIDs() bool {
	var ids []int
	if json.Unmarshal(a.b.Prompt, &ids) != nil {
		return true
	}
	a.prompt = len(ids)
	for _, id := range ids {
		if id >= FirstToken {
			a.from++
		}
	}
	a.until = min(a.from+a.b.MaxTokens, max(a.w.Words, 20))
	if a.w.Words > 0 {
		a.until = min(a.from+a.b.MaxTokens, a.w.Words)
	}
	return a.w.Context < 0 || len(ids)+a.b.MaxTokens <= a.w.context()
}

func (a *answer) book(n int64) {
	w := a.w
	w.mu.Lock()
	defer w.mu.Unlock()
	a.booked += n
	w.used += n
	if door := a.r.Header.Get(api.HeaderDoor); door != "" {
		d := w.doors[door]
		if d == nil {
			d = &api.DoorStatus{}
			w.doors[door] = d
		}
		d.ResidentTokens += n
	}
}

func (a *answer) unbook() { a.book(-a.booked) }

// sleep waits, and reports whether the client is still there.
func (a *answer) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	return wait(a, t.C)
}

// wait waits for a value, at a worker that is not terminated meanwhile, and reports
// whether the client is still there.
func wait[T any](a *answer, value <-chan T) bool {
	select {
	case <-a.r.Context().Done():
		a.w.Cancelled.Add(1)
		return false
	case <-value:
		return true
	case <-a.over:
		a.aborted = true
		return true
	}
}

// next waits for the next token, and reports whether the client is still there.
func (a *answer) next() bool {
	if a.tokens == nil {
		return a.sleep(a.w.Pace)
	}
	return wait(a, a.tokens)
}

func (a *answer) word(i int) string { return fmt.Sprintf("%s%s%d ", a.w.Salt, a.adapter, i) }

// model is the name that the answer carries.
func (a *answer) model() string { return cmp.Or(a.adapter, a.w.model()) }

func (a *answer) usage() string {
	n := a.until
	if a.b.Resume == nil {
		n -= a.from
	}
	return fmt.Sprintf(`{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}`, a.prompt, a.prompt+n, n)
}

func (a *answer) whole() {
	var text strings.Builder
	finish := "stop"
	for i := a.from; i < a.until; i++ {
		if !a.next() {
			return
		}
		if a.aborted {
			a.until, finish = i, "abort"
			break
		}
		a.w.said()
		text.WriteString(a.word(i))
	}
	choice := fmt.Sprintf(`{"index":0,"text":%q,"finish_reason":%q}`, text.String(), finish)
	object := "text_completion"
	if a.chat {
		choice = fmt.Sprintf(`{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":%q}`, text.String(), finish)
		object = "chat.completion"
	}
	out := fmt.Sprintf(`{"id":%q,"object":%q,"created":%d,"model":%q,"choices":[%s],"usage":%s}`, a.id, object, a.created, a.model(), choice, a.usage())
	a.rw.Header().Set("Content-Type", "application/json")
	a.rw.Header().Set("Content-Length", fmt.Sprint(len(out)))
	a.rw.Write([]byte(out))
}

// event sends one event with a choice in it.
func (a *answer) event(choices, extra string) bool {
	object := "text_completion"
	if a.chat {
		object = "chat.completion.chunk"
	}
	_, err := fmt.Fprintf(a.rw, "data: {\"id\":%q,\"object\":%q,\"created\":%d,\"model\":%q,\"choices\":[%s]%s}\n\n", a.id, object, a.created, a.model(), choices, extra)
	a.rw.(http.Flusher).Flush()
	return err == nil
}

func (a *answer) stream() {
	a.rw.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	a.rw.WriteHeader(200)
	a.rw.(http.Flusher).Flush()
	ids := a.b.ReturnIDs && !a.w.NoIDs
	die := a.w.DieAfter.Load()
	if a.w.DieOnce != nil {
		die = max(die, a.w.DieOnce.Swap(0))
	}
	if a.chat && a.b.Resume == nil {
		extra := ""
		switch {
		case ids:
			extra = `,"prompt_token_ids":[1,2,3],"prompt_text":null`
		case a.tellsNulls():
			extra = `,"prompt_token_ids":null,"prompt_text":null`
		}
		a.event(`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`, extra)
	}
	for i := a.from; i < a.until; i++ {
		if !a.next() {
			return
		}
		if a.aborted {
			a.until = i
			a.event(a.abort(), "")
			break
		}
		if die > 0 && int64(i-a.from) >= die {
			conn, _, err := a.rw.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
			return
		}
		a.w.said()
		a.book(1)
		extra := ""
		if i == a.until-1 && a.tellsNulls() {
			extra = `,"system_fingerprint":"vllm-0.32.0-sim"`
		}
		a.event(a.choice(i, a.release(i), ids), extra)
	}
	if a.b.Options.IncludeUsage {
		a.event("", `,"usage":`+a.usage())
	}
	fmt.Fprint(a.rw, "data: [DONE]\n\n")
}

// release is the text that leaves with a token: all but what vLLM holds back
// for the stop string, and a half character not before it is whole.
func (a *answer) release(i int) string {
	text := a.word(i)
	if a.w.Halves && i%5 == 3 && i < a.until-1 {
		text = ""
	} else if a.w.Halves && i%5 == 4 && i > a.from {
		text = a.word(i-1) + text // behind a prompt that ends in the half, it would be lost
	}
	if a.w.Reason > 0 && i == a.w.Reason {
		text = marker + text
	}
	if a.w.Own || a.b.Stop == "" {
		return text
	}
	a.held += text
	n := max(0, len(a.held)-len(a.b.Stop)+1)
	if i == a.until-1 {
		n = len(a.held)
	}
	text, a.held = a.held[:n], a.held[n:]
	return text
}

// tellsNulls reports whether the worker is a vLLM of today, which names what it does
// not tell.
func (a *answer) tellsNulls() bool { return !a.w.Own && !a.w.NoIDs }

// choice is the JSON of one token's choice, its fields in vLLM's order.
func (a *answer) choice(i int, text string, ids bool) string {
	finish, reason := "null", ""
	if i == a.until-1 {
		finish, reason = `"stop"`, `,"stop_reason":null`
	}
	said := ""
	switch {
	case ids:
		said = fmt.Sprintf(`,"token_ids":[%d]`, FirstToken+i)
	case a.tellsNulls():
		said = `,"token_ids":null`
	}
	if a.chat {
		return fmt.Sprintf(`{"index":0,"delta":{%s},"logprobs":null,"finish_reason":%s%s%s}`, a.delta(i, text), finish, reason, said)
	}
	prompt := ""
	switch {
	case ids && i == a.from:
		prompt = `,"prompt_token_ids":[1,2,3]`
	case a.tellsNulls():
		prompt = `,"prompt_token_ids":null`
	}
	return fmt.Sprintf(`{"index":0,"text":%q,"logprobs":null,"finish_reason":%s,"stop_reason":null%s%s}`, text, finish, prompt, said)
}

// abort is the JSON of a choice that is aborted.
func (a *answer) abort() string {
	if a.chat {
		return `{"index":0,"delta":{},"logprobs":null,"finish_reason":"abort","stop_reason":null,"token_ids":null}`
	}
	return `{"index":0,"text":"","logprobs":null,"finish_reason":"abort","stop_reason":null,"prompt_token_ids":null,"token_ids":null}`
}

// marker ends the reasoning.
const marker = "</think>"

// delta parts reasoning from the answer as vLLM's parser does: by the token that
// is the marker. Where the marker's text is held back for a stop string when its
// token comes, the parser takes one character too much, and the marker's text
// comes later as part of the answer.
func (a *answer) delta(i int, text string) string {
	if i != a.w.Reason || a.w.Reason == 0 {
		field := "content"
		if i < a.w.Reason {
			field = "reasoning_content"
		}
		return fmt.Sprintf("%q:%q", field, text)
	}
	thought, said, found := strings.Cut(text, marker)
	if !found {
		thought, said = text[:max(0, len(text)-1)], ""
	}
	return fmt.Sprintf(`"reasoning_content":%q,"content":%q`, thought, said)
}

// asked reads what stands behind Words at the end of a prompt: the length of the answer,
// which no router knows. Then the text alone counts as the prompt, whatever a router
// has added to the body.
func (a *answer) asked() {
	var text string
	if json.Unmarshal(a.b.Prompt, &text) != nil {
		return
	}
	if _, words, ok := strings.Cut(text[max(0, len(text)-len(Words)-6):], Words); ok {
		if n, err := strconv.Atoi(words); err == nil && n > 0 {
			a.until, a.prompt = n, len(text)/4
		}
	}
}

// Words at the end of a prompt's text says how many words a worker at a Speed is to
// answer.
const Words = " words="

// piecesOf are the chained digests of a prompt's blocks, four bytes a token.
func piecesOf(text []byte) (all []uint64) {
	h := fnv.New64a()
	text = bytes.TrimPrefix(text, []byte{'"'})
	for len(text) >= 4*blockOf {
		h.Write(text[:4*blockOf])
		all = append(all, h.Sum64())
		text = text[4*blockOf:]
	}
	return all
}
