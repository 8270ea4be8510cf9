package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"roundhouse/balancer/control"
)

// How long whoever asks the admin API may take, and how much he may say. Nothing of it
// is waited for in the loop.
const (
	bodyTime  = 10 * time.Second // to send a body
	writeTime = 30 * time.Second // to take what one write sends
	mostBody  = 1 << 20
)

// timely reads a request's body before anybody works on it, and gives up on those who
// do not take their answer.
func timely(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		w = timelyWriter{w, c}
		if r.ContentLength != 0 && !strings.HasPrefix(r.URL.Path, control.TryPath) { // the door bounds those
			_ = c.SetReadDeadline(time.Now().Add(bodyTime)) // a connection that has none is none of the network's
			most := int64(mostBody)
			if r.URL.Path == control.TotalsPath {
				most = mostTotals
			}
			data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
			_ = c.SetReadDeadline(time.Time{})
			var long *http.MaxBytesError
			switch {
			case errors.As(err, &long):
				fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d MiB", most>>20))
				return
			case errors.Is(err, os.ErrDeadlineExceeded):
				w.Header().Set("Connection", "close")
				fail(w, http.StatusRequestTimeout, "the body did not come within "+bodyTime.String())
				return
			case err != nil:
				fail(w, http.StatusBadRequest, "the body: "+err.Error())
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(data))
		}
		next.ServeHTTP(w, r)
	})
}

// timelyWriter gives each write a time limit of its own, so that an answer that goes
// on for days ends only if nobody takes it.
type timelyWriter struct {
	http.ResponseWriter
	controller *http.ResponseController
}

func (t timelyWriter) Write(data []byte) (int, error) {
	_ = t.controller.SetWriteDeadline(time.Now().Add(writeTime)) // as above
	return t.ResponseWriter.Write(data)
}

// Unwrap lets a http.ResponseController find the writer that it controls.
func (t timelyWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
