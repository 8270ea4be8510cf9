package speech

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// Token is a token of a text, and how likely it was.
type Token struct {
	ID      int32
	Logprob float64
}

// Stretch is what was said from one time to another.
type Stretch struct {
	Start, End float64 // seconds
	Tokens     []int32 // of words
	Text       string
	Logprob    float64 // mean of its tokens', times among them
}

// Stretches parts a text with times. begin is where its piece of sound begins, and
// length how long that is: what has no time of its own ends with it.
func (w *Words) Stretches(tokens []Token, begin, length float64, decode func([]int32) string) []Stretch {
	var out []Stretch
	var sum float64
	one, count := Stretch{Start: begin}, 0
	seconds := func(id int32) float64 { return begin + min(float64(id-w.Plain-1)/Second, length) }
	end := func(at float64) {
		if len(one.Tokens) > 0 {
			one.End, one.Text, one.Logprob = max(at, one.Start), decode(one.Tokens), sum/float64(count)
			out = append(out, one)
		}
		one, sum, count = Stretch{Start: at}, 0, 0
	}
	for _, t := range tokens {
		switch {
		case t.ID > w.Plain:
			sum, count = sum+t.Logprob, count+1
			if at := seconds(t.ID); len(one.Tokens) > 0 {
				end(at)
			} else {
				one.Start = at
			}
		case t.ID < w.End:
			one.Tokens = append(one.Tokens, t.ID)
			sum, count = sum+t.Logprob, count+1
		}
	}
	end(begin + length)
	return out
}

// Repetition is how much shorter a text becomes when it is packed: what repeats
// itself has a high one.
func Repetition(text string) float64 {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // a buffer takes all
	_ = z.Close()
	return float64(len(text)) / float64(b.Len())
}

// SRT writes stretches as subtitles.
func SRT(list []Stretch) string {
	var b strings.Builder
	for i, s := range list {
		fmt.Fprintf(&b, "%d\n%s --> %s\n%s\n\n", i+1, clock(s.Start, ','), clock(s.End, ','), line(s.Text))
	}
	return b.String()
}

// VTT writes stretches as subtitles for the web.
func VTT(list []Stretch) string {
	var b strings.Builder
	b.WriteString("WEBVTT\n\n")
	for _, s := range list {
		fmt.Fprintf(&b, "%s --> %s\n%s\n\n", clock(s.Start, '.'), clock(s.End, '.'), line(s.Text))
	}
	return b.String()
}

// line is a text that ends no entry of subtitles, nor begins one.
func line(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "-->", "->")
}

// clock is a time as 00:01:02,345.
func clock(seconds float64, point byte) string {
	ms := int64(seconds*1000 + 0.5)
	return fmt.Sprintf("%02d:%02d:%02d%c%03d", ms/3_600_000, ms/60_000%60, ms/1000%60, point, ms%1000)
}
