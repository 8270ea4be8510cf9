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
func (x *exchange) readForm(seen *wire.Seen, k *key) *failure {
	ctype := string(seen.Type)
	media, params, err := mime.ParseMediaType(ctype)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" || strings.ContainsAny(ctype, "\r\n") {
		return badRequest("", "the content type must be multipart/form-data with a boundary")
	}
	x.asked.ctype = ctype
	form := multipart.NewReader(bytes.NewReader(x.payload.body), params["boundary"])
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
		if x.asked.peek.Model != "" {
			return badRequest("model", "the field \"model\" is given twice")
		}
		x.asked.peek.Model = string(value)
	}
	asked := x.asked.peek.Model
	if f := x.find(x.v, string(seen.Session)); f != nil {
		return f
	}
	if x.asked.model != asked && asked != "" {
		return badRequest("model", "aliases and routes are not served with multipart bodies; ask for %q", x.asked.model)
	}
	return x.permit(k)
}
