package surface

import (
	"net/http"
	"sync/atomic"
	"time"
)

// dateLine is the field Date of one second.
type dateLine struct {
	second int64
	line   []byte
}

var lastDate atomic.Pointer[dateLine]

// AppendDate appends the line of the field Date, which every answer of a server with a
// clock has (RFC 9110, 6.6.1). It is made once a second.
func AppendDate(b []byte) []byte {
	now := time.Now()
	d := lastDate.Load()
	if d == nil || d.second != now.Unix() {
		d = &dateLine{now.Unix(), now.UTC().AppendFormat([]byte("date: "), http.TimeFormat+"\r\n")}
		lastDate.Store(d)
	}
	return append(b, d.line...)
}
