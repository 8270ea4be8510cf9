package wire

import (
	"strings"
	"testing"
)

// TestMeasure tells text from token ids and from what is in base64.
func TestMeasure(t *testing.T) {
	b64 := strings.Repeat("iVBORw0KGgo/+AAA", 40)
	f := func(body string, text, ids, media int) {
		t.Helper()
		var p Peek
		if err := PeekBody([]byte(body), &p); err != nil {
			t.Fatalf("%.80s: %v", body, err)
		}
		if p.PromptBytes != text || p.PromptIDs != ids || p.Media != media {
			t.Errorf("%.80s: %d bytes of text, %d ids, %d pictures; want %d, %d, %d", body, p.PromptBytes, p.PromptIDs, p.Media, text, ids, media)
		}
	}
	all := func(value string) { t.Helper(); f(`{"prompt":`+value+`}`, len(value), 0, 0) }
	all(`"plain text"`)
	all(`["a","b"]`)
	all(`"data: these are numbers"`)
	all(`"data:image/png;base64 in a sentence"`)
	all(`"he wrote \"data:image/png;base64,` + b64 + `\""`)
	all(`"\"data\":\"` + b64 + `\""`)
	all(`{"data":"a short one"}`)
	all(`{"data":"` + strings.Repeat("words of a text document ", 40) + `"}`)
	all(`{"data":["` + b64 + `"]}`)
	all(`["data","` + b64 + `"]`)
	f(`{"prompt":[1, 2,3]}`, 0, 3, 0)
	f(`{"input":[[1,2],[3],[4,5]]}`, 0, 5, 0)
	f(`{"prompt":[1,"two"]}`, len(`[1,"two"]`), 0, 0)
	url := `"data:image/png;base64,` + b64 + `"`
	f(`{"prompt":`+url+`}`, 0, 0, 1)
	f(`{"messages":[{"url":`+url+`},{"url":`+url+`}]}`, len(`[{"url":},{"url":}]`), 0, 2)
	f(`{"messages":[{"url":`+strings.ReplaceAll(url, "/", `\/`)+`}]}`, len(`[{"url":}]`), 0, 1)
	f(`{"messages":[{"data" : "`+b64+`"}]}`, len(`[{"data" : }]`), 0, 1)
	f(`{"system":"be brief","messages":[{}],"instructions":"or not"}`, len(`"be brief"[{}]"or not"`), 0, 0)
}
