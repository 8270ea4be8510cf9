package wire

import "bytes"

// measure adds what a part of the prompt is made of: text, of whose bytes tokens
// are estimated; token ids, which count one each; and pictures, sound and film in
// base64, whose bytes say nothing of their tokens.
func (p *Peek) measure(at Span, body []byte) {
	v := at.Of(body)
	if n := ids(v); n > 0 {
		p.PromptIDs += n
		return
	}
	p.PromptBytes += len(v) - p.media(v, at.From)
}

// ids counts the numbers of a list of token ids, or of a list of such lists; 0
// where v is something else.
func ids(v []byte) int {
	depth := 0
	for i, c := range v {
		switch {
		case c == '[' && depth < 2:
			depth++
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
		case c >= '0' && c <= '9' && depth > 0:
			if bytes.IndexByte(v[i:], '"') >= 0 || bytes.IndexByte(v[i:], '{') >= 0 {
				return 0
			}
			return bytes.Count(v, []byte{','}) + 1
		default:
			return 0
		}
	}
	return 0
}

// leastMedia is how long the value of "data" is at least where it is taken for
// base64.
const leastMedia = 256

// Item is the base64 of one picture or piece of sound or film.
type Item struct {
	Span
	Pixels int // 0: its size is not known
}

// mostItems is of how many items a body's places are kept; further ones are
// counted alone.
const mostItems = 1024

// media counts the strings that hold base64: data: URLs, and the values of "data"
// of audio and image parts. Of pictures whose header says their size it counts the
// pixels instead. It returns the bytes of those strings in v, which begins at base
// in the body.
func (p *Peek) media(v []byte, base int) (inside int) {
	for i := 0; ; {
		at := bytes.Index(v[i:], []byte(`"data`))
		if at < 0 {
			return inside
		}
		at += i
		i = at + len(`"data`)
		if at > 0 && v[at-1] == '\\' { // a quote within a string
			continue
		}
		from := at
		if bytes.HasPrefix(v[i:], []byte(`":`)) || bytes.HasPrefix(v[i:], []byte(`" `)) {
			rest := bytes.TrimLeft(v[i+1:], ": \t\r\n")
			from = len(v) - len(rest)
			if !inBase64(rest) {
				continue
			}
		} else if !dataURL(v[i:]) {
			continue
		}
		length := bytes.IndexByte(v[from+1:], '"') + 2
		inside, i = inside+length, from+length
		data := base64Of(v[from:i])
		known := pixels(data)
		if p.Pixels += known; known == 0 {
			p.Media++
		}
		if len(data) >= leastMedia && len(p.Items) < mostItems {
			p.Items = append(p.Items, Item{Span{base + i - 1 - len(data), base + i - 1}, known})
		}
	}
}

// base64Of is what a string holds behind the head of a data: URL, if it has one.
func base64Of(quoted []byte) []byte {
	if len(quoted) < 2 {
		return nil
	}
	text := quoted[1 : len(quoted)-1]
	return text[bytes.IndexByte(text[:min(len(text), 256)], ',')+1:]
}

// dataURL reports whether what follows "data is the rest of a data: URL in base64.
func dataURL(rest []byte) bool {
	head := rest[:min(len(rest), 256)]
	if end := bytes.IndexByte(head, '"'); end >= 0 {
		head = head[:end]
	}
	return len(head) > 0 && head[0] == ':' && bytes.Contains(head, []byte(";base64,"))
}

// inBase64 reports whether a value is a long string of base64, by its beginning.
func inBase64(v []byte) bool {
	if len(v) <= leastMedia || v[0] != '"' {
		return false
	}
	for _, c := range v[1 : 1+leastMedia] {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '+' && c != '/' && c != '-' && c != '_' && c != '\\' {
			return false
		}
	}
	return true
}
