package balancer

import "strings"

// kind is what a path of the surface is for.
type kind byte

const (
	kindNone   kind = iota // not served: 404
	kindChat               // POST: a generation whose stream can be resumed
	kindText               // POST: the same for completions
	kindGen                // POST: other generations: responses, messages
	kindJSON               // POST: JSON in, JSON out, nothing generated
	kindForm               // POST: multipart
	kindHeld               // GET, DELETE, POST on what a worker has stored
	kindPass               // what passes through (package pass)
	kindModels             // the door's own
	kindModel
	kindHealth
	kindMetrics
)

// surface is every path that the door serves. What is not here is 404: what
// operates an engine never passes, whatever it is called next year.
var surface = map[string]kind{
	"/v1/chat/completions":      kindChat,
	"/v1/completions":           kindText,
	"/v1/responses":             kindGen,
	"/v1/messages":              kindGen,
	"/v1/messages/count_tokens": kindJSON,
	"/v1/embeddings":            kindJSON,
	"/v1/rerank":                kindJSON,
	"/v2/rerank":                kindJSON,
	"/rerank":                   kindJSON,
	"/v1/score":                 kindJSON,
	"/score":                    kindJSON,
	"/classify":                 kindJSON,
	"/pooling":                  kindJSON,
	"/tokenize":                 kindJSON,
	"/detokenize":               kindJSON,
	"/v1/audio/transcriptions":  kindForm,
	"/v1/audio/translations":    kindForm,
	"/v1/models":                kindModels,
	"/health":                   kindHealth,
	"/metrics":                  kindMetrics,
}

const (
	messagesPath   = "/v1/messages"
	responsesPath  = "/v1/responses"
	modelPrefix    = "/v1/models/"
	responsePrefix = "/v1/responses/"
)

// pathOf is string(path) that makes no copy of the paths that nearly all
// requests are for.
func pathOf(path []byte) string {
	switch string(path) {
	case "/v1/chat/completions":
		return "/v1/chat/completions"
	case "/v1/completions":
		return "/v1/completions"
	}
	return string(path)
}

// kindOf looks a path up, byte for byte: an encoded or dotted path is another
// path, and not served.
func kindOf(path string) kind {
	if k, ok := surface[path]; ok {
		return k
	}
	if rest, ok := strings.CutPrefix(path, modelPrefix); ok && rest != "" && len(rest) < 256 {
		return kindModel
	}
	if rest, ok := strings.CutPrefix(path, responsePrefix); ok {
		id, act, _ := strings.Cut(rest, "/")
		if validID(id) && (act == "" || act == "cancel" || act == "input_items") && !strings.HasSuffix(rest, "/") {
			return kindHeld
		}
	}
	return kindNone
}

// validID reports whether s may stand as an id: [A-Za-z0-9_-]{1,64}.
func validID(s string) bool {
	if s == "" || len(s) > 64 {
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
