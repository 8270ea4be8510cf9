package pass

import (
	"io"
	"net/http"
	"time"
)

// Upload reads a request's body within the time that its bytes may take.
type Upload struct {
	Body io.Reader
	Ctl  *http.ResponseController
	Idle time.Duration // the longest pause
	Err  error         // how it has ended
}

// Read implements io.Reader.
func (u *Upload) Read(p []byte) (int, error) {
	u.Ctl.SetReadDeadline(time.Now().Add(u.Idle))
	n, err := u.Body.Read(p)
	if err != nil {
		u.Err = err
		u.Ctl.SetReadDeadline(time.Time{})
	}
	return n, err
}
