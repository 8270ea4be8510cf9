package balancer

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// readForm takes the model out of a multipart body, which passes as it came.
func (a *asked) readForm(seen *wire.Seen, body []byte) *surface.Failure {
	ctype := string(seen.Type)
	media, params, err := mime.ParseMediaType(ctype)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" || strings.ContainsAny(ctype, "\r\n") {
		return surface.BadRequest("", "the content type must be multipart/form-data with a boundary")
	}
	a.ctype = ctype
	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for range 64 {
		part, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return surface.BadRequest("", "the multipart body is malformed")
		}
		name := part.FormName()
		if name != "model" && name != "stream" {
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, 256))
		switch {
		case err != nil:
			return surface.BadRequest(name, "the multipart body is malformed")
		case name == "stream":
			a.peek.Stream = isTrue(string(value))
		case a.peek.Model != "":
			return surface.BadRequest("model", "the field \"model\" is given twice")
		default:
			a.peek.Model = string(value)
		}
	}
	return nil
}

// isTrue reports whether a word of a form or a query says yes, as engines read it. The
// engine itself is the judge of words that say neither.
func isTrue(word string) bool {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "true", "1", "yes", "y", "on", "t":
		return true
	}
	return false
}
