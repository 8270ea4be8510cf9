package control

import (
	"net"
	"net/http"
	"strconv"
)

// OperatorHeader gives the name of whoever asks an admin API. Nobody checks it.
const OperatorHeader = "X-Roundhouse-Operator"

// longestName bounds a name that stays in events, logs and the journal.
const longestName = 64

// Asker names whoever asks an admin API, for events and logs: by the name in the
// header, which nobody has checked, and by the client's address, which no header
// can claim.
func Asker(r *http.Request) string {
	by := Named(r.Header.Get(OperatorHeader))
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		by += " from " + host
	}
	return by
}

// Named is the asker of that name, as a supervisor tells it to its doors, whose
// private sockets see no client's address. An empty name and one too long to keep
// are left out.
func Named(name string) string {
	if name == "" || len(name) > longestName {
		return "operator"
	}
	return "operator " + strconv.Quote(name)
}
