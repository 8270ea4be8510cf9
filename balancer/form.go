package balancer

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"roundhouse/balancer/wire"
)

// readForm takes the model out of a multipart body, which passes as it came.
func (a *asked) readForm(seen *wire.Seen, body []byte) *failure {
	ctype := string(seen.Type)
	media, params, err := mime.ParseMediaType(ctype)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" || strings.ContainsAny(ctype, "\r\n") {
		return badRequest("", "the content type must be multipart/form-data with a boundary")
	}
	a.ctype = ctype
	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for range 64 {
		part, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return badRequest("", "the multipart body is malformed")
		}
		if part.FormName() != "model" {
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, 256))
		if err != nil {
			return badRequest("model", "the multipart body is malformed")
		}
		if a.peek.Model != "" {
			return badRequest("model", "the field \"model\" is given twice")
		}
		a.peek.Model = string(value)
	}
	return nil
}
