package wire

import (
	"bytes"
	"slices"
	"testing"
)

var answerFields = []string{`"content":"`, `"text":"`}

func chat(text, ids string) string {
	return `data: {"id":"c-1","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null` + ids + `}]}` + "\n\n"
}

// FuzzAlike: an event that is taken for like another is the first event there,
// and what is left of it and its ids are what cutting the field out leaves.
func FuzzAlike(f *testing.F) {
	for _, s := range [][2]string{
		{chat(" a", `,"token_ids":[1]`), chat(" word", `,"token_ids":[2,3]`)}, {chat(" a", ""), chat(`\"\u00e9`, "")},
		{chat("a", `,"token_ids":[1],"x":2`), chat("b", `,"token_ids":[99999999999],"x":2`)}, {chat("a", `,"token_ids":[1] `), chat("b", `,"token_ids":[7] `)},
		{chat("a", `,"token_ids":[1]`), chat("a\n\nb", `,"token_ids":[1]`)}, {`data: {"text":"a","token_ids":[1]}` + "\n\n", `data: {"text":"b","token_ids":[2]}` + "\n\ndata"},
	} {
		f.Add([]byte(s[0]), []byte(s[1]), true)
	}
	f.Fuzz(func(t *testing.T, event, next []byte, cut bool) {
		if n := NextEvent(event); n == 0 || n != len(event) {
			return
		}
		var a EventPattern
		a.Learn(event, answerFields, cut)
		n, left, ids := a.Take([]byte("x"), next, []int32{5})
		if n == 0 {
			if len(left) != 1 || len(ids) != 1 {
				t.Fatalf("nothing was taken, but %q and %d are there", left, ids)
			}
			return
		}
		if want := NextEvent(next); n != want {
			t.Fatalf("took %d bytes of %q, the event has %d", n, next, want)
		}
		want, wantIDs := append([]byte("x"), next[:n]...), []int32{5}
		if v, ok := Field(next[:n], `"token_ids"`); ok && a.HasIDs() {
			wantIDs = Ints(wantIDs, v)
			if cut {
				want, _ = CutField(want, `"token_ids"`, nil)
			}
		}
		if !bytes.Equal(left, want) || !slices.Equal(ids, wantIDs) {
			t.Fatalf("of %q is left %q with %d, should be %q with %d", next[:n], left, ids, want, wantIDs)
		}
	})
}

func TestAlike(t *testing.T) {
	f := func(event, next, left string, ids ...int32) {
		t.Helper()
		var a EventPattern
		a.Learn([]byte(event), answerFields, true)
		n, got, gotIDs := a.Take(nil, []byte(next), nil)
		if string(got) != left || !slices.Equal(gotIDs, ids) || (n > 0) != (left != "") {
			t.Errorf("%s\nafter %s\ngot %d, %q with %d", next, event, n, got, gotIDs)
		}
	}
	one := chat(" a", `,"token_ids":[1]`)
	f(one, chat(" longer", `,"token_ids":[23,4]`)+"data: more", chat(" longer", ""), 23, 4)
	f(one, chat(`\"\\`, `,"token_ids":[5]`), chat(`\"\\`, ""), 5)
	f(chat("a", ""), chat("b", ""), chat("b", ""))
	// Each of these differs in something that must be looked at.
	f(one, chat("", `,"token_ids":[5]`), "")
	f(one, chat("b", `,"token_ids":[]`), "")
	f(one, chat("b", ""), "")
	f(one, chat("b", `,"token_ids":[5],"usage":{}`), "")
	f(one, chat("b\r", `,"token_ids":[5]`), "")
	f(one, chat("b", `,"token_ids":[5]`)[:60], "")
	f(chat("", ""), chat("b", ""), "")
	f(chat(`a","text":"b`, ""), chat(`c","text":"b`, ""), "")
	f("", chat("b", ""), "")
}
