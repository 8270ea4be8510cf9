package differential

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Difference is one way in which our answer is not vLLM's.
type Difference struct {
	Name string // of the request
	Kind string // status, error, param, keys, text, thoughts, finish, prompt, completion, logprobs, events or count
	What string
}

func (d Difference) String() string { return fmt.Sprintf("%s: %s: %s", d.Name, d.Kind, d.What) }

// Compare lists how ours differs from vLLM's answer. Keys that vLLM does not send
// are no difference.
func Compare(theirs, ours *Answer) []Difference {
	var out []Difference
	differ := func(kind string, want, got any) {
		out = append(out, Difference{theirs.Name, kind, fmt.Sprintf("vLLM %.300s, ours %.300s", fmt.Sprint(want), fmt.Sprint(got))})
	}
	if theirs.Status != ours.Status {
		differ("status", theirs.Status, ours.Status)
		return out
	}
	if (theirs.Error == nil) != (ours.Error == nil) {
		differ("error", theirs.Error, ours.Error)
		return out
	}
	if e, f := theirs.Error, ours.Error; e != nil {
		if e.Type != f.Type || fmt.Sprint(e.Code) != fmt.Sprint(f.Code) {
			differ("error", fmt.Sprint(e.Type, " ", e.Code), fmt.Sprint(f.Type, " ", f.Code))
		}
		if fmt.Sprint(e.Param) != fmt.Sprint(f.Param) {
			differ("param", e.Param, f.Param)
		}
		return out
	}
	theirs, ours, thoughts := named(theirs, ours)
	if thoughts {
		differ("thoughts", "thoughts", "an answer, in the same words")
	}
	if missing := without(theirs.Keys, ours.Keys); len(missing) > 0 {
		differ("keys", strings.Join(missing, " "), "without")
	}
	for _, x := range []struct {
		kind      string
		want, got any
	}{
		{"text", theirs.Text, ours.Text}, {"finish", theirs.Finish, ours.Finish}, {"prompt", theirs.Prompt, ours.Prompt},
		{"completion", theirs.Completion, ours.Completion}, {"events", theirs.kindsInOrder(), ours.kindsInOrder()},
	} {
		if fmt.Sprintf("%q", x.want) != fmt.Sprintf("%q", x.got) {
			differ(x.kind, x.want, x.got)
		}
	}
	if ours.Count < theirs.Count { // vLLM puts several tokens into one event when it is busy
		differ("count", theirs.Count, ours.Count)
	}
	if what := logprobsDiffer(theirs.Logprobs, ours.Logprobs); what != "" {
		out = append(out, Difference{theirs.Name, "logprobs", what})
	}
	return out
}

// thoughtKeys are the keys that only thoughts have.
var thoughtKeys = regexp.MustCompile(`(reasoning|thinking|signature|summary|encrypted_content)$`)

// thoughtNames are what thoughts are called, and answers.
var thoughtNames = regexp.MustCompile(`\b(reasoning|thinking|content|text|message)\b=?`)

// named gives thoughts and answers one name, if that makes of different words the same.
func named(theirs, ours *Answer) (*Answer, *Answer, bool) {
	a, b := theirs.unnamed(), ours.unnamed()
	if slices.Equal(theirs.Text, ours.Text) || !slices.Equal(a.Text, b.Text) {
		return theirs, ours, false
	}
	return a, b, true
}

// unnamed is an answer in which thoughts have no name of their own.
func (a *Answer) unnamed() *Answer {
	b := *a
	b.Keys = slices.DeleteFunc(slices.Clone(a.Keys), thoughtKeys.MatchString)
	b.Text, b.Events = nil, nil
	for _, t := range a.Text {
		name, said, _ := strings.Cut(t, "=")
		b.Text = append(b.Text, thoughtNames.ReplaceAllString(name, "said")+"="+said)
	}
	for _, e := range a.Events {
		if e = thoughtNames.ReplaceAllString(e, "said"); len(b.Events) == 0 || b.Events[len(b.Events)-1] != e {
			b.Events = append(b.Events, e)
		}
	}
	return &b
}

// kindsInOrder are the kinds of events as they come; of several choices each kind once,
// since which choice is told first is chance.
func (a *Answer) kindsInOrder() []string {
	if len(a.Finish) < 2 {
		return a.Events
	}
	var out []string
	for _, kind := range a.Events {
		if !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	return out
}

// without lists what is in a and not in b.
func without(a, b []string) []string {
	var out []string
	for _, s := range a {
		if _, there := slices.BinarySearch(b, s); !there {
			out = append(out, s)
		}
	}
	return out
}

// logprobsDiffer tells where two lists are more than 0.05 and a fiftieth apart;
// the model computes in bfloat16.
func logprobsDiffer(a, b []float64) string {
	if len(a) != len(b) {
		return fmt.Sprintf("vLLM has %d, ours %d", len(a), len(b))
	}
	for i := range a {
		if math.Abs(a[i]-b[i]) > 0.05+0.02*math.Abs(a[i]) {
			return fmt.Sprintf("token %d: vLLM %v, ours %v", i, a[i], b[i])
		}
	}
	return ""
}
