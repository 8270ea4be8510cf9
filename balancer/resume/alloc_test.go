package resume

import (
	"bytes"
	"fmt"
	"testing"
)

// TestTakeAllocatesNothing relays events that are like those before them: a read
// full of them, and one event at a time, take no memory but for their token ids.
func TestTakeAllocatesNothing(t *testing.T) {
	event := func(i int) []byte {
		return fmt.Appendf(nil, "data: {\"id\":\"a\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"w%03d\"},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":[%d]}]}\n\n", i, 1000+i)
	}
	r := begin(kind{api: Chat, body: chatBody, worker: fake{}})
	first := []byte("data: {\"id\":\"a\",\"created\":1,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"prompt_token_ids\":[1,2,3]}\n\n")
	var o Out
	if _, err := r.s.Take(&o, append(first, event(0)...)); err != nil {
		t.Fatal(err)
	}
	many := bytes.Repeat(event(1), 40)
	read := make([]byte, 0, len(many))
	o.B = make([]byte, 0, 2*len(many))
	for name, text := range map[string][]byte{"forty events": many, "one event": event(1)} {
		got := testing.AllocsPerRun(200, func() {
			o.B, read = o.B[:0], append(read[:0], text...)
			r.s.choices[0].tokens = r.s.choices[0].tokens[:0]
			o.Forget()
			if got, err := r.s.Take(&o, read); err != nil || got.Events == 0 {
				t.Fatal(got, err)
			}
		})
		if got > 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
