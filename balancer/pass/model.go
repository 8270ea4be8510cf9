package pass

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
)

// Said is what a request says of itself before its long part begins.
type Said struct {
	Model string // empty: it names none, or not within what was looked at
	N     int    // the answers that it asks for; 1 where it does not say
}

// ErrForm says that a body is not what its content type tells.
var ErrForm = errors.New("the multipart body is malformed")

// Read takes out of the beginning of a body what it says. whole says that begin is all
// of it: only then is a fault of its form known to be one.
func Read(ctype string, begin []byte, whole bool) (Said, error) {
	media, params, err := mime.ParseMediaType(ctype)
	if err != nil && ctype != "" {
		return Said{N: 1}, fmt.Errorf("the content type %.80q cannot be read", ctype)
	}
	if media == "multipart/form-data" {
		if params["boundary"] == "" {
			return Said{N: 1}, errors.New("the content type has no boundary")
		}
		return readForm(params["boundary"], begin, whole)
	}
	if media != "" && media != "application/json" {
		return Said{N: 1}, fmt.Errorf("the content type must be application/json or multipart/form-data, not %.80q", media)
	}
	return readJSON(begin, whole)
}

// readJSON reads the top of an object, member by member, so that what stands before a
// long one is known without it.
func readJSON(begin []byte, whole bool) (Said, error) {
	said := Said{N: 1}
	fail := func(err error) (Said, error) {
		if !whole {
			return said, nil
		}
		return said, fmt.Errorf("the body is not a JSON object: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(begin))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		if err == nil {
			err = errors.New("it does not begin with {")
		}
		return fail(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fail(err)
		}
		var value any
		switch name {
		case "model":
			var model *string
			if err := d.Decode(&model); err != nil {
				return fail(fmt.Errorf("model: %w", err))
			}
			if model != nil {
				said.Model = *model
			}
			continue
		case "n":
			value = new(float64)
		default:
			value = new(json.RawMessage)
		}
		if err := d.Decode(value); err != nil {
			return fail(err)
		}
		if n, ok := value.(*float64); ok && *n >= 1 && *n <= 128 {
			said.N = int(*n)
		}
	}
	if _, err := d.Token(); err != nil {
		return fail(err)
	}
	return said, nil
}

// readForm reads the parts of a form up to where begin ends.
func readForm(boundary string, begin []byte, whole bool) (Said, error) {
	said := Said{N: 1}
	form := multipart.NewReader(bytes.NewReader(begin), boundary)
	for range 256 {
		part, err := form.NextPart()
		if err == io.EOF {
			return said, nil
		}
		if err != nil {
			if whole {
				return said, ErrForm
			}
			return said, nil
		}
		name := part.FormName()
		if name != "model" && name != "n" {
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, 256))
		if err != nil {
			if whole {
				return said, ErrForm
			}
			return said, nil
		}
		if name == "model" {
			if said.Model != "" {
				return said, errors.New("the field \"model\" is given twice")
			}
			said.Model = string(value)
			continue
		}
		var n int
		if _, err := fmt.Sscanf(string(value), "%d", &n); err == nil && n >= 1 && n <= 128 {
			said.N = n
		}
	}
	return said, nil
}
