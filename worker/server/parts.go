package server

import (
	"strings"

	"roundhouse/worker/template"
)

// parts reads a content in parts: for a model that reads text only, one text; for
// one that sees, the parts as its template takes them, whose pictures are
// gathered in their order.
func (g *gallery) parts(parts []any, i int) (content any, text string, err *apiError) {
	var texts []string
	list := []any{}
	for _, p := range parts {
		if s, ok := p.(string); ok {
			p = template.NewDict().Set("type", "text").Set("text", s)
		}
		d, ok := p.(*template.Dict)
		if !ok {
			return nil, "", badValue("", "message %d has a part that is no object", i)
		}
		kind, _ := d.Get("type")
		switch kind {
		case "thinking", "redacted_thinking":
			continue // what the model thought before is no part of the conversation
		case "text", "input_text", "output_text", "refusal":
			t, err := partText(d, kind, i)
			if err != nil {
				return nil, "", err
			}
			texts = append(texts, t)
			list = append(list, template.NewDict().Set("type", "text").Set("text", t))
		case "image_url", "input_image", "image":
			if err := g.picture(d, kind.(string), i); err != nil {
				return nil, "", err
			}
			list = append(list, template.NewDict().Set("type", "image"))
		default:
			return nil, "", g.unread(kind, i)
		}
	}
	text = strings.Join(texts, "\n")
	if g.sight == nil || !g.sight.lists {
		return text, text, nil
	}
	return list, text, nil
}

// partText is the text of a part.
func partText(d *template.Dict, kind any, i int) (string, *apiError) {
	field := "text"
	if kind == "refusal" {
		field = "refusal"
	}
	s, _ := d.Get(field)
	t, ok := s.(string)
	if !ok {
		return "", badValue("", "message %d has a part of type text without the field text", i)
	}
	return t, nil
}

// unread refuses a part of a kind that the model does not read.
func (g *gallery) unread(kind any, i int) *apiError {
	param, reads := "", "text and images"
	if g.sight == nil {
		reads = "text only"
	}
	if kind == "file" { // vLLM names the field for this kind alone
		param = "type"
	}
	return badValue(param, "message %d has a part of type %.64v, and this model reads %s", i, kind, reads)
}

// picture takes note of a part's picture: image_url as OpenAI's chats have it,
// input_image as its responses do, image as Anthropic's messages do.
func (g *gallery) picture(d *template.Dict, kind string, i int) *apiError {
	if g.sight == nil {
		return g.unread(kind, i)
	}
	if !g.sight.lists {
		return badValue("image", "this model's chat template takes texts only; give one that takes parts with --chat-template FILE")
	}
	url, _ := d.Get("image_url")
	if o, ok := url.(*template.Dict); ok {
		url, _ = o.Get("url")
	}
	if source, _ := d.Get("source"); kind == "image" && source != nil {
		url = sourceURL(source)
	}
	text, ok := url.(string)
	if !ok {
		return badValue("image", "message %d has a part of type %s without the image's URL", i, kind)
	}
	if len(g.sources) >= g.sight.Most {
		return badValue("image", "At most %d image(s) may be provided in one prompt. Set `--limit-mm-per-prompt` to increase this limit.", g.sight.Most)
	}
	g.sources = append(g.sources, text)
	return nil
}

// sourceURL is the URL of a picture as Anthropic's messages have it; nil: there
// is none.
func sourceURL(source any) any {
	d, ok := source.(*template.Dict)
	if !ok {
		return nil
	}
	if kind, _ := d.Get("type"); kind == "base64" {
		data, _ := d.Get("data")
		if text, ok := data.(string); ok {
			return "data:image/*;base64," + text
		}
		return nil
	}
	url, _ := d.Get("url")
	return url
}
