package speech

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// spelled are the tokens of a small model: 100 words, the end, and what stands
// behind it.
func spelled() []string {
	names := make([]string, 100)
	names = append(names, "<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|zh|>", "<|translate|>", "<|transcribe|>", "<|startofprev|>", "<|notimestamps|>")
	for i := range 11 {
		names = append(names, fmt.Sprintf("<|%.2f|>", float64(i)/50))
	}
	return names
}

func wordsOf(t testing.TB, names []string, s Settings) (*Words, error) {
	t.Helper()
	if s.Vocab == 0 {
		s.Vocab = len(names)
	}
	return NewWords(s, func(name string) (int32, bool) {
		i := slices.Index(names, name)
		return int32(i), i >= 0
	}, func(id int32) string { return names[id] })
}

// TestWords: tokens are found by name, and what a model lacks is told.
func TestWords(t *testing.T) {
	w, err := wordsOf(t, spelled(), Settings{Many: true, Latest: -1})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Codes(); !slices.Equal(got, []string{"de", "en", "zh"}) {
		t.Errorf("languages %v", got)
	}
	for name, want := range map[string]string{"de": "de", "German": "de", " EN ": "en", "french": "", "": ""} {
		if code, ok := w.Language(name); ok != (want != "") || ok && code != want {
			t.Errorf("language %q: %q, %v; want %q", name, code, ok, want)
		}
	}
	f := func(want string, got []int32) {
		t.Helper()
		if fmt.Sprint(got) != want {
			t.Errorf("prompt %v; want %s", got, want)
		}
	}
	f("[101 103 106 108]", w.Prompt(nil, "de", false, false, 64))
	f("[101 103 105]", w.Prompt(nil, "de", true, true, 64))
	f("[107 7 8 9 101 102 106 108]", w.Prompt([]int32{5, 6, 7, 8, 9}, "en", false, false, 8))
	english, err := wordsOf(t, spelled(), Settings{})
	if err != nil {
		t.Fatal(err)
	}
	f("[101 108]", english.Prompt(nil, "en", false, false, 64))
	if _, ok := english.Language("de"); ok {
		t.Error("a model that knows English alone knows German")
	}
	for _, lost := range []string{"<|endoftext|>", "<|startoftranscript|>", "<|transcribe|>", "<|translate|>", "<|startofprev|>", "<|notimestamps|>"} {
		names := spelled()
		names[slices.Index(names, lost)] = ""
		if _, err := wordsOf(t, names, Settings{Many: true}); err == nil || !strings.Contains(err.Error(), lost) {
			t.Errorf("without %s: %v", lost, err)
		}
	}
	if _, err := wordsOf(t, spelled(), Settings{Vocab: 109}); err == nil || !strings.Contains(err.Error(), "in this order") {
		t.Errorf("without times: %v", err)
	}
	none := spelled()
	none[102], none[103], none[104] = "", "", ""
	if _, err := wordsOf(t, none, Settings{Many: true}); err == nil || !strings.Contains(err.Error(), "no languages") {
		t.Errorf("without languages: %v", err)
	}
}

// allowed are the tokens that a mask allows.
func allowed(mask []uint32, vocab int) (list []int32) {
	for id := range int32(vocab) {
		if mask[id/32]>>(id%32)&1 != 0 {
			list = append(list, id)
		}
	}
	return list
}

// FuzzGuide: whatever a model writes, some token may follow, times never fall, and
// what is suppressed is never allowed.
func FuzzGuide(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 200, 7}, true, 3)
	f.Add([]byte{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, true, -1)
	f.Add([]byte{255, 255, 255, 0, 0, 0}, false, 1<<40)
	f.Fuzz(func(t *testing.T, picks []byte, times bool, latest int) {
		w, err := wordsOf(t, spelled(), Settings{Many: true, Latest: latest, Suppress: []int32{3, 4, 101}, First: []int32{5, 100}})
		if err != nil {
			t.Fatal(err)
		}
		g, last := w.Guide(times), int32(0)
		for n, p := range picks {
			list := allowed(g.Mask(0), 120)
			if len(list) == 0 || slices.Contains(list, 3) || slices.Contains(list, 101) || n == 0 && slices.Contains(list, 5) || times && slices.Contains(list, w.Plain) {
				t.Fatalf("behind %v: %v", g.out, list)
			}
			id := list[int(p)*len(list)/256]
			if times && id > w.Plain {
				if id < last {
					t.Fatalf("behind %v the time %d", g.out, id)
				}
				last = id
			}
			if times && n == 0 && id <= w.Plain {
				t.Fatalf("a text with times begins with %d", id)
			}
			if !g.Accept(id) {
				t.Fatalf("behind %v, %d was allowed and is refused", g.out, id)
			}
			if id == w.End {
				return
			}
		}
		if g.Accept(4) {
			t.Error("what is suppressed was taken")
		}
	})
}

// TestStretches: what was said between two times is one stretch; what has no end of
// its own ends with its piece.
func TestStretches(t *testing.T) {
	w, err := wordsOf(t, spelled(), Settings{Many: true})
	if err != nil {
		t.Fatal(err)
	}
	f := func(want string, begin, length float64, ids ...int32) {
		t.Helper()
		var tokens []Token
		for i, id := range ids {
			tokens = append(tokens, Token{ID: id, Logprob: -float64(i)})
		}
		got := ""
		for _, s := range w.Stretches(tokens, begin, length, func(ids []int32) string { return fmt.Sprint(ids) }) {
			got += fmt.Sprintf("%.2f-%.2f %s %.2f; ", s.Start, s.End, s.Text, s.Logprob)
		}
		if got != want {
			t.Errorf("%v: %q; want %q", ids, got, want)
		}
	}
	const zero = 109
	f("", 0, 1)
	f("", 0, 1, zero, zero+3, 100)
	f("0.02-0.06 [7 8] -1.50; 0.08-0.10 [9] -5.00; ", 0, 1, zero+1, 7, 8, zero+3, zero+4, 9, zero+5, 100)
	f("30.02-30.06 [7] -1.00; 30.06-31.00 [9 9] -3.50; ", 30, 1, zero+1, 7, zero+3, 9, 9)
	f("2.00-2.50 [7 8] -0.50; ", 2, 0.5, 7, 8, 100)
	f("0.10-0.10 [7] -1.00; ", 0, 0.1, zero+9, 7, zero+10)
}

// TestSubtitles: texts do not break the format that they stand in.
func TestSubtitles(t *testing.T) {
	list := []Stretch{{Start: 0, End: 1.5, Text: " one\n\n2\n00:00:00,000 --> x "}, {Start: 3661.0016, End: 3661.9999, Text: "two"}}
	if got, want := SRT(list), "1\n00:00:00,000 --> 00:00:01,500\none 2 00:00:00,000 -> x\n\n2\n01:01:01,002 --> 01:01:02,000\ntwo\n\n"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	if got, want := VTT(list[1:]), "WEBVTT\n\n01:01:01.002 --> 01:01:02.000\ntwo\n\n"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	if a, b := Repetition("la la la la la la la la la la la la"), Repetition("every word of it says another thing"); a < 2*b {
		t.Errorf("what repeats itself has %.2f, what does not %.2f", a, b)
	}
}
