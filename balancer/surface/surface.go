package surface

import "strings"

// Kind is what a path of the surface is for.
type Kind byte

const (
	None       Kind = iota // not served: 404
	Chat                   // POST: a generation whose stream can be resumed
	Text                   // POST: the same for completions
	Generation             // POST: other generations: responses, messages
	JSON                   // POST: JSON in, JSON out, nothing generated
	Form                   // POST: multipart
	Stored                 // GET, DELETE, POST on what a worker has stored
	Pass                   // a body that passes through (package pass)
	Models                 // the door's own
	Model
	Health
	Metrics
)

// Paths is every path that the door serves. What is not here is 404: what
// operates an engine never passes, whatever it is called next year.
var Paths = map[string]Kind{
	"/v1/chat/completions":      Chat,
	"/v1/completions":           Text,
	"/v1/responses":             Generation,
	"/v1/messages":              Generation,
	"/v1/messages/count_tokens": JSON,
	"/v1/embeddings":            JSON,
	"/v1/rerank":                JSON,
	"/v2/rerank":                JSON,
	"/rerank":                   JSON,
	"/v1/score":                 JSON,
	"/score":                    JSON,
	"/classify":                 JSON,
	"/pooling":                  JSON,
	"/tokenize":                 JSON,
	"/detokenize":               JSON,
	"/v1/audio/transcriptions":  Form,
	"/v1/audio/translations":    Form,
	"/v1/models":                Models,
	"/health":                   Health,
	"/metrics":                  Metrics,
}

const (
	MessagesPath   = "/v1/messages"
	ResponsesPath  = "/v1/responses"
	ModelPrefix    = "/v1/models/"
	ResponsePrefix = "/v1/responses/"
)

// PathOf is string(path) that makes no copy of the paths that nearly all
// requests are for.
func PathOf(path []byte) string {
	switch string(path) {
	case "/v1/chat/completions":
		return "/v1/chat/completions"
	case "/v1/completions":
		return "/v1/completions"
	}
	return string(path)
}

// KindOf looks a path up, byte for byte: an encoded or dotted path is another
// path, and not served.
func KindOf(path string) Kind {
	if k, ok := Paths[path]; ok {
		return k
	}
	if rest, ok := strings.CutPrefix(path, ModelPrefix); ok && rest != "" && len(rest) < 256 {
		return Model
	}
	if rest, ok := strings.CutPrefix(path, ResponsePrefix); ok {
		id, act, _ := strings.Cut(rest, "/")
		if ValidID(id) && (act == "" || act == "cancel" || act == "input_items") && !strings.HasSuffix(rest, "/") {
			return Stored
		}
	}
	return None
}

// ValidID reports whether s may stand as an id: [A-Za-z0-9_-]{1,64}.
func ValidID(s string) bool { return Plain(s, 64) }

// Plain reports whether s is letters, digits, - and _ alone, from one to most of them.
func Plain(s string, most int) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
