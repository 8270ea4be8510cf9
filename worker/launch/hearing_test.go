package launch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"roundhouse/worker/sound"
	"roundhouse/worker/workertest"
)

// hearingFolder writes a model that hears, with random weights.
func hearingFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := workertest.WriteHearing(dir, "../model/testdata/whisper.json"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// formOf is a form with a file, as a client sends it; fields are names and values.
func formOf(t *testing.T, file []byte, fields ...string) (body *bytes.Buffer, kind string) {
	t.Helper()
	body = &bytes.Buffer{}
	form := multipart.NewWriter(body)
	for i := 0; i < len(fields); i += 2 {
		if err := form.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if file != nil {
		w, err := form.CreateFormFile("file", "a.wav")
		if err == nil {
			_, err = w.Write(file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return body, form.FormDataContentType()
}

// said is the answer to a form.
func said(t *testing.T, url string, file []byte, fields ...string) (status int, kind, answer string) {
	t.Helper()
	body, kind := formOf(t, file, fields...)
	resp, err := http.Post(url, kind, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(data)
}

// heardAnswer is what the tests look at of an answer.
type heardAnswer struct {
	Text, Language, Task string
	Duration             float64
	Usage                *struct {
		Type    string
		Seconds int
	}
	Segments []struct {
		ID          int
		Start, End  float64
		Text        string
		Tokens      []int32
		Logprob     float64 `json:"avg_logprob"`
		Compression float64 `json:"compression_ratio"`
	}
}

func hear(t *testing.T, url string, file []byte, fields ...string) *heardAnswer {
	t.Helper()
	status, _, answer := said(t, url+"/v1/audio/transcriptions", file, fields...)
	a := &heardAnswer{}
	if err := json.Unmarshal([]byte(answer), a); err != nil || status != 200 {
		t.Fatalf("%v: %d %s (%v)", fields, status, answer, err)
	}
	return a
}

// TestHears: sound changes the text; the same one gives the same, alone, in company,
// in small steps and where there is room for one text at a time; long sound gives
// what its pieces give.
func TestHears(t *testing.T) {
	args := []string{"--model", hearingFolder(t), "--served-model-name", "m", "--dtype", "float32", "--block-size", "16"}
	url := demoServer(t, args...).URL
	one, two, long := workertest.Sing(0.9, 1), workertest.Sing(0.9, 2), workertest.Sing(2.6, 3)
	first := hear(t, url, one, "model", "m", "language", "en")
	if first.Text == "" || first.Usage == nil || first.Usage.Type != "duration" || first.Usage.Seconds != 1 {
		t.Errorf("0.9 seconds are %+v", first)
	}
	if other := hear(t, url, two, "language", "en"); other.Text == first.Text {
		t.Errorf("another sound gives the same text: %q", other.Text)
	}
	if german := hear(t, url, one, "language", "de"); german.Text == first.Text {
		t.Errorf("another language gives the same text: %q", german.Text)
	}
	if prompted := hear(t, url, one, "language", "en", "prompt", "Where are we?"); prompted.Text == first.Text {
		t.Errorf("what was said before gives the same text: %q", prompted.Text)
	}
	samples, err := sound.Decode(long, sound.Limits{Seconds: 10})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, p := range sound.Cut(samples, sound.Rate) {
		texts = append(texts, hear(t, url, wavOf(p), "language", "en").Text)
	}
	whole := hear(t, url, long, "language", "en")
	if want := strings.Join(texts, " "); len(texts) < 3 || whole.Text != want || whole.Usage.Seconds != 3 {
		t.Errorf("2.6 seconds are %q (%d); their pieces %q", whole.Text, whole.Usage.Seconds, want)
	}
	small := demoServer(t, append(args, "--max-num-batched-tokens", "4", "--max-num-seqs", "4")...).URL
	tight := demoServer(t, append(args, "--num-gpu-blocks-override", "4", "--mm-processor-cache-gb", "0.000001")...).URL
	var wait sync.WaitGroup
	for range 3 {
		for _, url := range []string{url, small, tight} {
			wait.Go(func() {
				if a := hear(t, url, one, "language", "en"); a.Text != first.Text {
					t.Errorf("in company: %q; alone %q", a.Text, first.Text)
				}
				if a := hear(t, url, long, "language", "en"); a.Text != whole.Text {
					t.Errorf("in company: %q; alone %q", a.Text, whole.Text)
				}
			})
		}
	}
	wait.Wait()
}

// wavOf is a WAV file of floats.
func wavOf(samples []float32) []byte {
	b := []byte("RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x03\x00\x01\x00\x80\x3e\x00\x00\x00\xfa\x00\x00\x04\x00\x20\x00data\xff\xff\xff\xff")
	for _, v := range samples {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// TestSpeechFormats: each format has the same stretches, in their order and within
// the sound; languages are found where none is named; a stream says what an answer
// says, to clients of vLLM's and of OpenAI's.
func TestSpeechFormats(t *testing.T) {
	url := demoServer(t, "--model", hearingFolder(t), "--served-model-name", "m", "--dtype", "float32").URL
	const path = "/v1/audio/transcriptions"
	long := workertest.Sing(2.6, 3)
	v := hear(t, url, long, "response_format", "verbose_json", "timestamp_granularities[]", "segment")
	if !slices.Contains(workertest.Languages, v.Language) || v.Duration != 2.6 || v.Task != "transcribe" || len(v.Segments) < 3 {
		t.Errorf("%+v", v)
	}
	at := 0.0
	for i, s := range v.Segments {
		if s.ID != i || s.Start < at || s.End < s.Start || s.End > v.Duration+1e-9 || len(s.Tokens) == 0 || s.Logprob >= 0 || s.Compression <= 0 {
			t.Errorf("stretch %d behind %g: %+v", i, at, s)
		}
		at = s.Start
	}
	_, kind, srt := said(t, url+path, long, "response_format", "srt", "language", v.Language)
	if n := strings.Count(srt, " --> "); n != len(v.Segments) || !strings.HasPrefix(srt, "1\n00:00:00,") || !strings.HasPrefix(kind, "application/x-subrip") {
		t.Errorf("%s with %d of %d stretches: %s", kind, n, len(v.Segments), srt)
	}
	_, kind, vtt := said(t, url+path, long, "response_format", "vtt", "language", v.Language)
	if n := strings.Count(vtt, " --> "); n != len(v.Segments) || !strings.HasPrefix(vtt, "WEBVTT\n\n00:00:00.") || !strings.HasPrefix(kind, "text/vtt") {
		t.Errorf("%s with %d of %d stretches: %s", kind, n, len(v.Segments), vtt)
	}
	plain := hear(t, url, long)
	if named := hear(t, url, long, "language", v.Language); named.Text != plain.Text {
		t.Errorf("in %s, as was found: %q; otherwise %q", v.Language, named.Text, plain.Text)
	}
	if _, kind, text := said(t, url+path, long, "response_format", "text"); text != plain.Text+"\n" || !strings.HasPrefix(kind, "text/plain") {
		t.Errorf("%s: %q; want %q", kind, text, plain.Text)
	}
	status, _, translated := said(t, url+"/v1/audio/translations", long)
	if status != 200 || strings.Contains(translated, "usage") || strings.Contains(translated, plain.Text) {
		t.Errorf("translated: %d %s", status, translated)
	}
	checkSpeechStream(t, url+path, long, plain.Text)
	if _, _, warm := said(t, url+path, long, "temperature", "1", "seed", "7", "language", "en"); strings.Contains(warm, plain.Text) {
		t.Errorf("a temperature changes nothing: %s", warm)
	}
	if short := hear(t, url, long, "max_completion_tokens", "1", "language", "en"); len(short.Text) >= len(plain.Text) {
		t.Errorf("one token of each piece: %q", short.Text)
	}
}

// checkSpeechStream reads a stream as both kinds of clients do.
func checkSpeechStream(t *testing.T, url string, file []byte, want string) {
	t.Helper()
	_, kind, stream := said(t, url, file, "stream", "true", "stream_include_usage", "true")
	var theirs, openAIs, last string
	usage, ended := 0, false
	for lines := bufio.NewScanner(strings.NewReader(stream)); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			ended = ended || ok
			continue
		}
		var e struct {
			Object, Type, Delta, Text string
			Choices                   []struct{ Delta struct{ Content string } }
			Usage                     *struct {
				Completion int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Object != "transcription.chunk" {
			t.Fatalf("%s: %v", data, err)
		}
		for _, c := range e.Choices {
			theirs += c.Delta.Content
		}
		if e.Type == "transcript.text.delta" {
			openAIs += e.Delta
		} else if e.Type == "transcript.text.done" {
			last = e.Text
		}
		if e.Usage != nil {
			usage = e.Usage.Completion
		}
	}
	if strings.TrimSpace(theirs) != want || theirs != openAIs || last != theirs || usage < 3 || !ended || !strings.HasPrefix(kind, "text/event-stream") {
		t.Errorf("%s: %q, %q, %q with %d tokens, ended %v; want %q", kind, theirs, openAIs, last, usage, ended, want)
	}
}

// TestSpeechRefused: what cannot be written down is a 4xx with a sentence, and the
// worker goes on.
func TestSpeechRefused(t *testing.T) {
	o, err := ParseServe([]string{"--model", hearingFolder(t), "--served-model-name", "m"}, func(name string) string {
		return map[string]string{"VLLM_MAX_AUDIO_CLIP_FILESIZE_MB": "0.2", "VLLM_MAX_AUDIO_DECODE_DURATION_S": "3"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	url := serveOpen(t, o, quiet).URL
	good := workertest.Sing(0.5, 1)
	path := "/v1/audio/transcriptions"
	f := func(status int, want string, file []byte, fields ...string) {
		t.Helper()
		got, _, answer := said(t, url+path, file, fields...)
		if got != status || !strings.Contains(answer, want) {
			t.Errorf("%v: %d %s; want %d with %q", fields, got, answer, status, want)
		}
	}
	f(200, `"text"`, good)
	f(400, "Field required", nil, "model", "m")
	f(400, "no sound that is read", []byte("hello"))
	f(400, "is MP4 or M4A", []byte("\x00\x00\x00\x20ftypM4A "))
	f(400, "the sound file is empty", []byte{})
	f(400, "ends before its time", good[:30])
	f(400, "longer than 3 seconds", workertest.Sing(3.1, 1))
	f(413, "VLLM_MAX_AUDIO_CLIP_FILESIZE_MB", workertest.Sing(8, 1))
	f(404, "The model `x` does not exist.", good, "model", "x")
	f(400, `Unsupported language: \"tlh\". Language must be one of de, en, ja.`, good, "language", "tlh")
	f(200, `"text"`, good, "language", "German")
	f(400, "Input should be 'json', 'text', 'srt', 'verbose_json', 'vtt'", good, "response_format", "xml")
	f(400, "times of words are not supported", good, "response_format", "verbose_json", "timestamp_granularities[]", "word")
	f(400, "need response_format verbose_json", good, "timestamp_granularities[]", "segment")
	f(400, "srt cannot be streamed", good, "response_format", "srt", "stream", "true")
	f(400, "Stream options can only be defined", good, "stream_include_usage", "true")
	f(400, "Input should be a valid number", good, "temperature", "warm")
	f(400, "temperature must be in [0, 2]", good, "temperature", "3")
	f(400, "Input should be a valid boolean", good, "stream", "maybe")
	f(400, "beam search is not supported", good, "use_beam_search", "true")
	f(400, "Must be valid JSON", good, "vllm_xargs", "{")
	f(400, "cannot be greater than max_model_len", good, "max_completion_tokens", "1000")
	f(400, "is larger than 65536 bytes", good, "prompt", strings.Repeat("a", 70_000))
	resp, err := http.Post(url+path, "application/json", strings.NewReader(`{"file":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("JSON in place of a form: %d", resp.StatusCode)
	}
	path = "/v1/chat/completions"
	f(404, "Not Found", good)
	path = "/v1/audio/translations"
	f(200, `"text"`, good)
}

// TestSpeechDrains: what is taken in is answered whole while the worker stops.
func TestSpeechDrains(t *testing.T) {
	o, err := ParseServe([]string{"--model", hearingFolder(t), "--served-model-name", "m", "--dtype", "float32", "--pace", "2ms"}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	w, hs := workerOpen(t, o, quiet)
	path, long := hs.URL+"/v1/audio/transcriptions", workertest.Sing(2.6, 3)
	want := hear(t, hs.URL, long)
	body, kind := formOf(t, long, "stream", "true")
	resp, err := http.Post(path, kind, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text := ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var e struct{ Type, Delta string }
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		if text == "" { // two pieces are still to come
			w.Engine.Drain()
			if status, _, answer := said(t, path, long); status != 503 {
				t.Errorf("behind the end: %d %s", status, answer)
			}
		}
		text += e.Delta
	}
	if strings.TrimSpace(text) != want.Text {
		t.Errorf("while the worker stops: %q; want %q", text, want.Text)
	}
	if !w.Engine.WaitIdle(t.Context()) {
		t.Error("the engine is not idle")
	}
}

// TestHearingStarts: a folder that cannot be served is refused by name.
func TestHearingStarts(t *testing.T) {
	f := func(want, file string, edit func(map[string]any), args ...string) {
		t.Helper()
		dir := hearingFolder(t)
		if file != "" {
			change(t, dir+"/"+file, edit)
		}
		o, err := ParseServe(append([]string{"--model", dir}, args...), func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		w, err := Open(o, quiet)
		if err == nil {
			_ = w.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", file, err, want)
		}
	}
	f("start it with --device cpu", "", nil, "--device", "xpu")
	f("feature_size is 128", "preprocessor_config.json", func(c map[string]any) { c["feature_size"] = 128 })
	f("chunk_length is 30", "preprocessor_config.json", func(c map[string]any) { c["chunk_length"] = 30 })
	f("no token <|notimestamps|>", "tokenizer.json", func(c map[string]any) {
		c["added_tokens"] = slices.DeleteFunc(c["added_tokens"].([]any), func(one any) bool { return one.(map[string]any)["content"] == "<|notimestamps|>" })
	})
	for _, name := range []string{"VLLM_MAX_AUDIO_CLIP_FILESIZE_MB", "VLLM_MAX_AUDIO_DECODE_DURATION_S"} {
		if _, err := ParseServe(nil, func(n string) string {
			if n == name {
				return "-1"
			}
			return ""
		}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s is \"-1\"", name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
