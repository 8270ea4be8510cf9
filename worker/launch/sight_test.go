package launch

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"roundhouse/worker/workertest"
)

// seeingFolder writes a model that sees, with random weights.
func seeingFolder(t *testing.T, fixture, template string) string {
	t.Helper()
	dir := t.TempDir()
	if err := workertest.WriteSeeing(dir, "../model/testdata/"+fixture+".json"); err != nil {
		t.Fatal(err)
	}
	if template != "" {
		put(t, filepath.Join(dir, "chat_template.jinja"), template)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// change edits a JSON file.
func change(t *testing.T, path string, f func(map[string]any)) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	f(c)
	if data, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	put(t, path, string(data))
}

// drawn is a small PNG: what it shows follows from the seed.
func drawn(t *testing.T, width, height, seed int) []byte {
	t.Helper()
	file, err := workertest.Draw(width, height, seed)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func dataURL(file []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(file)
}

// seenAnswer is what the tests look at of an answer.
type seenAnswer struct {
	Choices []struct {
		Message  struct{ Content string }
		Logprobs struct {
			Content []struct{ Logprob float64 }
		}
	}
	Usage struct {
		Prompt  int `json:"prompt_tokens"`
		Details struct {
			Cached     int            `json:"cached_tokens"`
			Multimodal map[string]int `json:"multimodal_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// said is the answer's text and how likely each token was, to the bit.
func (a *seenAnswer) said() string {
	return fmt.Sprint(a.Choices[0].Message.Content, a.Choices[0].Logprobs.Content)
}

// picturing is a chat whose content is in parts: texts, and URLs of pictures.
func picturing(parts ...string) map[string]any {
	var content []any
	for _, p := range parts {
		if strings.Contains(p, ":") {
			content = append(content, map[string]any{"type": "image_url", "image_url": map[string]any{"url": p, "detail": "high"}})
		} else {
			content = append(content, map[string]any{"type": "text", "text": p})
		}
	}
	return map[string]any{"model": "m", "messages": []any{map[string]any{"role": "user", "content": content}}, "max_tokens": 6, "temperature": 0, "logprobs": true, "ignore_eos": true}
}

func see(t *testing.T, url string, parts ...string) *seenAnswer {
	t.Helper()
	a := &seenAnswer{}
	if err := postJSON(url+"/v1/chat/completions", picturing(parts...), a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestSees: a picture changes the answer and is counted; the same one gives the
// same bits, alone, in company, in small steps, from the caches, and where the
// cache of pages is too small for all; another one of the same size another.
func TestSees(t *testing.T) {
	for _, fixture := range []string{"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5_vl", "glm4v", "glm4v_moe"} {
		t.Run(fixture, func(t *testing.T) {
			dir := seeingFolder(t, fixture, "")
			args := []string{"--model", dir, "--served-model-name", "m", "--dtype", "float32", "--enable-prompt-tokens-details", "--block-size", "16"}
			url := demoServer(t, args...).URL
			one, two := dataURL(drawn(t, 40, 24, 1)), dataURL(drawn(t, 40, 24, 2))
			wide := dataURL(drawn(t, 90, 20, 3))
			first := see(t, url, "what is it", one)
			if n := first.Usage.Details.Multimodal["image"]; n != 15 {
				t.Errorf("an image of 40 by 24 pixels is %d tokens; want 15", n)
			}
			again := see(t, url, "what is it", one)
			kept := 16
			if strings.HasPrefix(fixture, "qwen3_5") {
				kept = 0 // a model with a state keeps no prefixes
			}
			if again.said() != first.said() || again.Usage.Details.Cached < kept {
				t.Errorf("the same picture again: %s with %d cached tokens; first %s", again.said(), again.Usage.Details.Cached, first.said())
			}
			if other := see(t, url, "what is it", two); other.said() == first.said() || other.Usage.Prompt != first.Usage.Prompt {
				t.Errorf("another picture gives the same answer: %s", other.said())
			}
			if without := see(t, url, "what is it"); without.Usage.Prompt != first.Usage.Prompt-17 || without.Usage.Details.Multimodal != nil {
				t.Errorf("%d tokens without the picture, %d with it, of which 15 are its own and 2 its marks", without.Usage.Prompt, first.Usage.Prompt)
			}
			both := see(t, url, "first", one, "then", two, "and last", wide)
			if swapped := see(t, url, "first", two, "then", one, "and last", wide); swapped.said() == both.said() {
				t.Error("two pictures in the other order give the same answer")
			}
			small := demoServer(t, append(args, "--max-num-batched-tokens", "8", "--max-num-seqs", "8", "--no-enable-prefix-caching")...).URL
			tight := demoServer(t, append(args, "--num-gpu-blocks-override", "8", "--max-model-len", "128", "--mm-processor-cache-gb", "0.000001")...).URL
			var wait sync.WaitGroup
			for range 4 {
				for _, url := range []string{url, small, tight} {
					wait.Go(func() {
						if a := see(t, url, "first", one, "then", two, "and last", wide); a.said() != both.said() {
							t.Errorf("in company: %s; alone %s", a.said(), both.said())
						}
						if a := see(t, url, "what is it", one); a.said() != first.said() {
							t.Errorf("in company: %s; alone %s", a.said(), first.said())
						}
					})
				}
			}
			wait.Wait()
		})
	}
}

// TestSeesByAllDoors: a picture is the same in chats, responses and messages, and
// what is counted before it is asked.
func TestSeesByAllDoors(t *testing.T) {
	url := demoServer(t, "--model", seeingFolder(t, "qwen2_5_vl", ""), "--served-model-name", "m").URL
	file := drawn(t, 40, 24, 1)
	want := see(t, url, "what is it", dataURL(file)).Usage.Prompt
	text := map[string]any{"type": "text", "text": "what is it"}
	var responses struct {
		Usage struct {
			Input int `json:"input_tokens"`
		}
	}
	if err := postJSON(url+"/v1/responses", map[string]any{"model": "m", "max_output_tokens": 16, "input": []any{map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "input_text", "text": "what is it"}, map[string]any{"type": "input_image", "image_url": dataURL(file)}}}}}, &responses); err != nil {
		t.Fatal(err)
	}
	image := map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": base64.StdEncoding.EncodeToString(file)}}
	body := map[string]any{"model": "m", "max_tokens": 4, "messages": []any{map[string]any{"role": "user", "content": []any{text, image}}}}
	var messages struct {
		Usage struct {
			Input int `json:"input_tokens"`
		}
	}
	if err := postJSON(url+"/v1/messages", body, &messages); err != nil {
		t.Fatal(err)
	}
	var counted struct{ Count int }
	if err := postJSON(url+"/tokenize", picturing("what is it", dataURL(file)), &counted); err != nil {
		t.Fatal(err)
	}
	if responses.Usage.Input != want || messages.Usage.Input != want || counted.Count != want {
		t.Errorf("responses count %d tokens, messages %d, /tokenize %d; chats %d", responses.Usage.Input, messages.Usage.Input, counted.Count, want)
	}
}

// TestPicturesRefused: what cannot be seen is a 4xx with a sentence, and the
// worker goes on.
func TestPicturesRefused(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "a.png"), string(drawn(t, 40, 24, 1)))
	put(t, filepath.Join(filepath.Dir(root), "secret.png"), string(drawn(t, 40, 24, 1)))
	url := demoServer(t, "--model", seeingFolder(t, "qwen2_vl", ""), "--served-model-name", "m",
		"--limit-mm-per-prompt", `{"image":2}`, "--allowed-local-media-path", root, "--allowed-media-domains", "pictures.example").URL
	f := func(status int, want string, parts ...string) {
		t.Helper()
		data, err := json.Marshal(picturing(parts...))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var answer struct{ Error struct{ Message string } }
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != status || !strings.Contains(answer.Error.Message, want) {
			t.Errorf("%.60q: %d %q (%v); want %d with %q", parts, resp.StatusCode, answer.Error.Message, err, status, want)
		}
	}
	good := dataURL(drawn(t, 40, 24, 1))
	f(400, "At most 2 image(s) may be provided in one prompt. Set `--limit-mm-per-prompt` to increase this limit.", good, good, good)
	f(400, "are no PNG, JPEG, WebP, GIF or BMP", dataURL([]byte("hello")))
	f(400, "cannot be read as PNG", dataURL(drawn(t, 40, 24, 1)[:60]))
	f(400, "is not base64", "data:image/png;base64,***")
	f(400, "not of the form data:", "data:image/png,abc")
	f(400, "says that it is text/html", "data:text/html;base64,aGk=")
	f(400, "one side may be at most 200 times", dataURL(drawn(t, 402, 2, 1)))
	f(400, "has the scheme gopher", "gopher://x/y")
	f(400, "not among `--allowed-media-domains`", "http://127.0.0.1/a.png")
	f(400, "neither 80 nor 443", "http://pictures.example:8080/a.png")
	f(400, "a user's name", "http://me@pictures.example/a.png")
	f(400, "below `--allowed-local-media-path`", "file:///etc/passwd")
	f(400, "below `--allowed-local-media-path`", "file://"+root+"/../secret.png")
	f(400, "below `--allowed-local-media-path`", "file://"+root)
	f(200, "", "look", "file://"+root+"/a.png")
	f(200, "", "look", good)

	o, err := ParseServe([]string{"--model", seeingFolder(t, "qwen2_vl", ""), "--served-model-name", "m"}, func(name string) string {
		return map[string]string{"VLLM_MAX_IMAGE_PIXELS": "900"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	url = serveOpen(t, o, quiet).URL
	f(400, "the image has 40 by 24 pixels; at most 900 are decoded", good)
	f(200, "", "look", dataURL(drawn(t, 36, 24, 1)))

	blind := demoServer(t, "--model", seeingFolder(t, "qwen2_vl", ""), "--served-model-name", "m", "--language-model-only").URL
	url = blind
	f(400, "this model reads text only", good)
	f(200, "", "hello")
	url = demoServer(t, "--model", seeingFolder(t, "qwen2_vl", `{% for m in messages %}{{ m.content }}{% endfor %}`), "--served-model-name", "m").URL
	f(400, "chat template takes texts only", good)
	f(200, "", "hello", "again")
}

// TestSightSettings: what does not fit stops the start.
func TestSightSettings(t *testing.T) {
	f := func(want string, spoil func(dir string), args ...string) {
		t.Helper()
		dir := seeingFolder(t, "qwen2_vl", "")
		spoil(dir)
		o, err := ParseServe(append([]string{"--model", dir}, args...), noEnv)
		if err == nil {
			var w *Worker
			if w, err = Open(o, quiet); err == nil {
				err = w.Close()
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	none := func(string) {}
	f("--language-model-only serves its text", func(dir string) { _ = os.Remove(filepath.Join(dir, "preprocessor_config.json")) })
	f("patches of 4 pixels", func(dir string) {
		change(t, filepath.Join(dir, "preprocessor_config.json"), func(c map[string]any) { c["temporal_patch_size"] = 1 })
	})
	f("max_pixels", none, "--mm-processor-kwargs", `[]`)
	f("pictures of 256 to 3 pixels", none, "--mm-processor-kwargs", `{"max_pixels":3}`)
	f("want a number", none, "--limit-mm-per-prompt", `{"image":"x"}`)
	f("the whole path of a folder", none, "--allowed-local-media-path", "pictures")
}

// TestResumeWithPicture: a stream that another worker has begun goes on with its
// picture, whose rows are made anew.
func TestResumeWithPicture(t *testing.T) {
	dir := seeingFolder(t, "qwen2_5_vl", "")
	here := demoServer(t, "--model", dir, "--served-model-name", "m", "--dtype", "float32").URL
	there := demoServer(t, "--model", dir, "--served-model-name", "m", "--dtype", "float32").URL
	for seed := range 2 {
		body := picturing("what is it", dataURL(drawn(t, 40, 24, seed+1)))
		body["stream"], body["return_token_ids"], body["max_tokens"] = true, true, 12
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		whole := readStream(t, here, string(text))
		body["roundhouse_resume"] = map[string]any{"id": whole.id, "created": whole.created, "token_ids": whole.ids[:5]}
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
		rest := readStream(t, there, string(text))
		if len(whole.ids) != 12 || fmt.Sprint(rest.ids) != fmt.Sprint(whole.ids[5:]) || !strings.HasSuffix(whole.text, rest.text) {
			t.Errorf("behind 5 tokens: %v %q; want the end of %v %q", rest.ids, rest.text, whole.ids, whole.text)
		}
	}
}
