package server

import (
	"context"

	"roundhouse/worker"
)

// streamTo tells of one answer event by event. It returns why there is none.
func (x *response) streamTo(ctx context.Context, write teller) *apiError {
	number := 0
	tell := func(kind string, fields map[string]any) error {
		fields["type"], fields["sequence_number"] = kind, number
		number++
		return write(kind, fields)
	}
	items := &responseItems{x: x, tell: tell}
	why, err := x.generate(ctx, items)
	if err != nil {
		e := x.failure(ctx, err)
		if e != nil && number > 0 {
			x.out.Status, x.out.Error = "failed", map[string]string{"code": "server_error", "message": e.Message}
			_ = tell("response.failed", map[string]any{"response": x.out})
		}
		return e
	}
	x.finished(items, why)
	_ = tell("response."+x.out.Status, map[string]any{"response": x.out})
	return nil
}

// generate has every token's text put into items.
func (x *response) generate(ctx context.Context, items *responseItems) (why worker.Finish, err error) {
	begun := false
	err = x.run(ctx, func(u update) error {
		if !begun {
			begun = true
			x.out.Status = "in_progress"
			for _, kind := range []string{"response.created", "response.in_progress"} {
				if err := items.tell(kind, map[string]any{"response": x.out}); err != nil {
					return err
				}
			}
		}
		why = u.finish
		said := x.readers[0].read(&u)
		x.said.add(said)
		if u.token >= 0 {
			x.tokens = append(x.tokens, u.token)
		}
		if u.token >= 0 && x.chat.f.Logprobs && !x.hides() {
			items.logprobs = append(items.logprobs, x.s.chatLogprob(u.event, nil, x.chat.f.TokensAsIDs))
		}
		return items.add(said)
	})
	if err == nil {
		err = items.finish()
	}
	return why, err
}
