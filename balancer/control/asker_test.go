package control_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"roundhouse/balancer/control"
)

// TestAsker names askers by header and address. A name that would fill the journal is
// left out, and one with quotes or line ends cannot feign another.
func TestAsker(t *testing.T) {
	for _, c := range [][3]string{
		{"ann", "10.1.2.3:4444", `operator "ann" from 10.1.2.3`},
		{"ann", "[::1]:4444", `operator "ann" from ::1`},
		{"ann", "@", `operator "ann"`},
		{"", "10.1.2.3:4444", "operator from 10.1.2.3"},
		{strings.Repeat("a", 65), "@", "operator"},
		{"ann\" from 10.9.9.9\n", "@", `operator "ann\" from 10.9.9.9\n"`},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set(control.OperatorHeader, c[0])
		r.RemoteAddr = c[1]
		if got := control.Asker(r); got != c[2] {
			t.Errorf("%q at %s is %s; want %s", c[0], c[1], got, c[2])
		}
	}
}
