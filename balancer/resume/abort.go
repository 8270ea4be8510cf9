package resume

import (
	"bytes"
	"encoding/json"
)

// A vLLM that is told to end says of every answer under way that it was aborted: chats
// and completions end with the finish reason "abort", messages without a stop reason,
// some responses with the status "cancelled". That is no end: the answer goes on
// elsewhere. Of our own engine an abort was asked for, and stands.
//
// Before it says so vLLM closes the open parts of messages and responses. A client that
// has this could not be given the rest, so it is held until the next event is there.

// ending is how an answer says that it was aborted, or the event that ends it.
type ending struct {
	Type    string `json:"type"`
	Choices []struct {
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Stop     string  `json:"stop_reason"`
	Content  []any   `json:"content"`
	Delta    *ending `json:"delta"`
	Status   string  `json:"status"`
	Response *ending `json:"response"`
}

// Aborted reports whether a whole answer, of a worker that is not ours, was aborted.
// Messages to which the second worker too gives no stop reason end so.
func Aborted(api API, body []byte, second bool) bool {
	switch api {
	case Chat, Text:
		return aborts(body)
	case Messages:
		if bytes.Contains(body, []byte(`"stop_reason":"`)) {
			return false
		}
		var e ending
		return json.Unmarshal(body, &e) == nil && e.Type == "message" && e.Stop == "" && !(second && len(e.Content) > 0)
	case Responses:
		var e ending
		return bytes.Contains(body, []byte(`"cancelled"`)) && json.Unmarshal(body, &e) == nil && e.Status == "cancelled"
	}
	return false
}

// aborts reports whether a choice of a chat or completion was aborted.
func aborts(data []byte) bool {
	if !bytes.Contains(data, []byte(`"abort"`)) {
		return false // nearly always, and nothing is allocated
	}
	var e ending
	if json.Unmarshal(data, &e) != nil {
		return false
	}
	for _, c := range e.Choices {
		if c.Finish == "abort" {
			return true
		}
	}
	return false
}
