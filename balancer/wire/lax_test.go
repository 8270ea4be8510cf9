package wire

import "testing"

// TestLax: what pydantic takes for a number or a truth the door reads alike, and what it
// refuses the door refuses.
func TestLax(t *testing.T) {
	for text, want := range map[string]int64{
		"4": 4, "4.0": 4, "4e0": 4, `"4"`: 4, `" 4 "`: 4, `"4.0"`: 4, "-1": -1, "true": 1, "false": 0, "null": 0, "999999999999999": 999999999999999,
	} {
		var p Peek
		if err := PeekBody([]byte(`{"n":1,"max_tokens":`+text+`}`), &p); err != nil || p.MaxTokens != max(want, 0) {
			t.Errorf("max_tokens %s: %d %v; want %d", text, p.MaxTokens, err, want)
		}
	}
	for _, text := range []string{"4.5", `"four"`, `""`, "[]", "{}", "1e300", "9223372036854775808", `"0x10"`, `"1_0"`, `"NaN"`, `"Infinity"`} {
		if err := PeekBody([]byte(`{"max_tokens":`+text+`}`), new(Peek)); err == nil {
			t.Errorf("max_tokens %s is taken", text)
		}
	}
	for text, want := range map[string]bool{
		"true": true, "false": false, "null": false, "1": true, "0": false, "1.0": true, `"true"`: true, `"YES"`: true, `"on"`: true, `"1"`: true, `"off"`: false, `"n"`: false,
	} {
		var p Peek
		if err := PeekBody([]byte(`{"stream":`+text+`,"echo":`+text+`,"return_token_ids":`+text+`,"stream_options":{"include_usage":`+text+`}}`), &p); err != nil || p.Stream != want || p.Echo != want || p.WantsTokenIDs != want || p.IncludeUsage != want {
			t.Errorf("%s: %+v %v; want %v", text, p, err, want)
		}
	}
	for _, text := range []string{"2", "-1", `"x"`, `""`, "[]", "{}", "0.5"} {
		if err := PeekBody([]byte(`{"stream":`+text+`}`), new(Peek)); err == nil {
			t.Errorf("stream %s is taken", text)
		}
		if err := PeekBody([]byte(`{"stream_options":{"include_usage":`+text+`}}`), new(Peek)); err == nil {
			t.Errorf("include_usage %s is taken", text)
		}
	}
}
