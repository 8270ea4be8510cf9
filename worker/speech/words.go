package speech

import (
	"fmt"
	"slices"
	"strings"
)

// Second is how many times there are in a second.
const Second = 50

// Words are the tokens that have a meaning of their own.
type Words struct {
	End        int32 // of the text; all below it are text
	Start      int32
	Transcribe int32
	Translate  int32
	Previous   int32 // before what was said earlier
	Plain      int32 // a text without times follows; the tokens behind it are the times, from 0 on

	Languages map[string]int32 // by code; nil: the model knows English alone, and no tasks

	vocab    int
	suppress []int32
	first    []int32
	latest   int
}

// Settings are what a model's folder says of them.
type Settings struct {
	Vocab    int
	Suppress []int32 // tokens that are never written
	First    []int32 // tokens that are not written first
	Latest   int     // of the times that may come first; -1: any
	Many     bool    // it knows languages and tasks
}

// NewWords finds the tokens by their names: id is that of a name.
func NewWords(s Settings, id func(name string) (int32, bool), name func(id int32) string) (*Words, error) {
	w := &Words{vocab: s.Vocab, suppress: s.Suppress, first: s.First, latest: s.Latest}
	for _, one := range []struct {
		name string
		at   *int32
	}{
		{"<|endoftext|>", &w.End}, {"<|startoftranscript|>", &w.Start}, {"<|transcribe|>", &w.Transcribe}, {"<|translate|>", &w.Translate},
		{"<|startofprev|>", &w.Previous}, {"<|notimestamps|>", &w.Plain},
	} {
		var ok bool
		if *one.at, ok = id(one.name); !ok {
			return nil, fmt.Errorf("tokenizer.json has no token %s, which models that write down speech need", one.name)
		}
	}
	if w.End >= w.Start || w.Start >= w.Plain || int(w.Plain) >= s.Vocab-1 {
		return nil, fmt.Errorf("tokenizer.json has <|endoftext|> as token %d, <|startoftranscript|> as %d and <|notimestamps|> as %d; want them in this order, and times behind them below vocab_size %d", w.End, w.Start, w.Plain, s.Vocab)
	}
	if !s.Many {
		return w, nil
	}
	w.Languages = map[string]int32{}
	for token := w.Start + 1; token < min(w.Transcribe, w.Translate); token++ {
		if code := strings.TrimSuffix(strings.TrimPrefix(name(token), "<|"), "|>"); code != "" && len(code) <= 3 {
			w.Languages[code] = token
		}
	}
	if len(w.Languages) == 0 {
		return nil, fmt.Errorf("tokenizer.json has no languages behind <|startoftranscript|>, and generation_config.json or vocab_size says that the model knows several")
	}
	return w, nil
}

// Language finds a language by its code or its English name, however it is
// written.
func (w *Words) Language(name string) (code string, ok bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	if c, known := byName[name]; known {
		name = c
	}
	if w.Languages == nil {
		return name, name == "en"
	}
	_, ok = w.Languages[name]
	return name, ok
}

// Codes are the languages that the model knows.
func (w *Words) Codes() []string {
	if w.Languages == nil {
		return []string{"en"}
	}
	codes := make([]string, 0, len(w.Languages))
	for c := range w.Languages {
		codes = append(codes, c)
	}
	slices.Sort(codes)
	return codes
}

// Spoken are the tokens of languages, and of which language each is.
func (w *Words) Spoken() map[int32]string {
	out := map[int32]string{}
	for code, id := range w.Languages {
		out[id] = code
	}
	return out
}

// Prompt is what stands before a text: what was said earlier, cut to its last
// tokens; the language and the task; whether times follow. context is the longest
// text of the model.
func (w *Words) Prompt(earlier []int32, language string, translate, times bool, context int) []int32 {
	var out []int32
	if most := context/2 - 1; len(earlier) > 0 && most > 0 {
		out = append(append(out, w.Previous), earlier[max(0, len(earlier)-most):]...)
	}
	out = append(out, w.Start)
	if w.Languages != nil {
		task := w.Transcribe
		if translate {
			task = w.Translate
		}
		out = append(out, w.Languages[language], task)
	}
	if !times {
		out = append(out, w.Plain)
	}
	return out
}

// Separator stands between the texts of two pieces of sound.
func Separator(language string) string {
	if language == "zh" || language == "ja" {
		return ""
	}
	return " "
}

// byName are languages by their English names, as clients of OpenAI's may send them.
var byName = map[string]string{
	"english": "en", "chinese": "zh", "german": "de", "spanish": "es", "russian": "ru", "korean": "ko", "french": "fr", "japanese": "ja", "portuguese": "pt",
	"turkish": "tr", "polish": "pl", "catalan": "ca", "dutch": "nl", "arabic": "ar", "swedish": "sv", "italian": "it", "indonesian": "id", "hindi": "hi",
	"finnish": "fi", "vietnamese": "vi", "hebrew": "he", "ukrainian": "uk", "greek": "el", "malay": "ms", "czech": "cs", "romanian": "ro", "danish": "da",
	"hungarian": "hu", "tamil": "ta", "norwegian": "no", "thai": "th", "urdu": "ur", "croatian": "hr", "bulgarian": "bg", "lithuanian": "lt", "latin": "la",
}
