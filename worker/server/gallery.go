package server

import (
	"errors"
	"net/http"
	"strings"

	"roundhouse/worker"
	"roundhouse/worker/media"
	"roundhouse/worker/template"
	"roundhouse/worker/tokenizer"
)

// Sight is how a model's pictures are read.
type Sight struct {
	Processor *media.Processor
	Image     int32 // token that stands for a picture, in templates once
	View      func(*media.Features) worker.TowerInput
	Pixels    media.Limits
	Patches   int // of the greatest picture
	Most      int // pictures of one prompt

	Folder  string   // that file: URLs may name files of; "": none
	Domains []string // that are fetched from; "*" is any

	lists bool // the template takes contents in parts

	Decoding chan struct{} // holds one for each picture that is being decoded
}

// takesParts reports whether a chat template goes through a content in parts,
// instead of writing the list as it is.
func takesParts(render func(map[string]any) ([]tokenizer.Segment, error)) bool {
	if render == nil {
		return false
	}
	parts := []any{template.NewDict().Set("type", "text").Set("text", "probe")}
	segments, err := render(map[string]any{"messages": []any{template.NewDict().Set("role", "user").Set("content", parts)},
		"add_generation_prompt": true, "tools": nil, "bos_token": "", "eos_token": ""})
	whole := ""
	for _, s := range segments {
		whole += s.Text
	}
	return err == nil && strings.Contains(whole, "probe") && !strings.Contains(whole, "'type'") && !strings.Contains(whole, `"type"`)
}

// mostDecoded is the bytes of pixels that the pictures of one request may have
// together, as decoded.
const mostDecoded = 512 << 20

// gallery is the pictures of one prompt.
type gallery struct {
	sight   *Sight // nil: the model sees nothing
	sources []string
}

// exhibit is a picture on its way into a prompt.
type exhibit struct {
	data        []byte
	lines, line int // patches
}

// hang puts the pictures into a prompt: the token that stands for each becomes as
// many as it has rows. Of a prompt that does not fit, nothing is decoded.
func (g *gallery) hang(tokens []int32, most int) ([]int32, []worker.Item, *apiError) {
	if len(g.sources) == 0 {
		return tokens, nil, nil
	}
	s := g.sight
	var all []exhibit
	total := 0
	for _, source := range g.sources {
		x, bytes, err := s.exhibit(source)
		if err != nil {
			return nil, nil, err
		}
		if total += bytes; total > mostDecoded {
			return nil, nil, badValue("image", "the images of this request are more than %d MiB when decoded", mostDecoded>>20)
		}
		all = append(all, x)
	}
	var out []int32
	var items []worker.Item
	merge := s.Processor.Merge()
	for _, id := range tokens {
		if id != s.Image {
			out = append(out, id)
			continue
		}
		if len(items) < len(all) {
			x := &all[len(items)]
			it := worker.Item{First: len(out), Lines: x.lines / merge, Line: x.line / merge}
			for range it.Count() {
				out = append(out, id)
			}
			items = append(items, it)
			continue
		}
		return nil, nil, badValue("messages", "the chat template has places for more than the request's %d image(s)", len(all))
	}
	if len(items) < len(all) {
		return nil, nil, badValue("messages", "the chat template has places for %d of the request's %d image(s)", len(items), len(all))
	}
	if len(out) > most {
		return out, nil, nil // it is refused for its length
	}
	for i := range items {
		if err := s.fill(&items[i], all[i].data); err != nil {
			return nil, nil, err
		}
	}
	return out, items, nil
}

// exhibit loads a picture's file and looks at its header.
func (s *Sight) exhibit(source string) (x exhibit, bytes int, err *apiError) {
	if x.data, err = s.load(source); err != nil {
		return x, 0, err
	}
	width, height, failed := media.Size(x.data, s.Pixels)
	if failed == nil {
		x.lines, x.line, failed = s.Processor.Grid(width, height)
	}
	if failed != nil {
		return x, 0, badPicture(failed)
	}
	if n := x.lines * x.line; n > s.Patches {
		return x, 0, badValue("image", "the image becomes %d patches; this model was started for %d", n, s.Patches)
	}
	return x, 3 * width * height, nil
}

// fill decodes a picture. What the tower reads is made when its turn comes.
func (s *Sight) fill(it *worker.Item, data []byte) *apiError {
	s.Decoding <- struct{}{}
	defer func() { <-s.Decoding }()
	pic, err := media.Decode(data, s.Pixels)
	if err == nil {
		pic, err = s.Processor.Fit(pic)
	}
	if err != nil {
		return badPicture(err)
	}
	it.Digest = s.Processor.Digest(data)
	it.Input = func() (worker.TowerInput, error) { return s.View(s.Processor.Features(pic)), nil }
	return nil
}

// takeSeen is take of a prompt that may have pictures, which must be whole.
func (c *chat) takeSeen(r *http.Request, p worker.Params, wanted *int, field string) *apiError {
	if items := c.wrote.media; len(items) > 0 && len(c.s.truncate(c.wrote.tokens, c.fields)) < len(c.wrote.tokens) {
		return badValue("truncate_prompt_tokens", "a prompt with images cannot be truncated")
	}
	if err := c.take(r, p, c.wrote.tokens, wanted, field); err != nil {
		return err
	}
	c.reqs[len(c.reqs)-1].Media = c.wrote.media
	return nil
}

// seen counts the prompt's tokens that stand for pictures, by kind; nil: there
// are none.
func (j *job) seen() any {
	n := 0
	for i := range j.reqs {
		for k := range j.reqs[i].Media {
			n += j.reqs[i].Media[k].Count()
		}
	}
	if n == 0 {
		return nil
	}
	return map[string]int{"image": n}
}

// badPicture tells what is wrong with a picture.
func badPicture(err error) *apiError {
	var told *media.Error
	if errors.As(err, &told) {
		return badValue("image", "%s", told.Error())
	}
	return badValue("image", "the image cannot be read")
}
