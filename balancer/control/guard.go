package control

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"roundhouse/configs"
	"roundhouse/web"
)

// Rights are what whoever asks an admin API may do.
type Rights string

// The rights.
const (
	Operator Rights = "operator"
	Read     Rights = "read" // everything is shown, and nothing is done
	Peer     Rights = "peer" // another door, which tells its totals
)

// wrongToken is how long whoever shows a wrong token or code waits for the answer.
const wrongToken = 500 * time.Millisecond

// mostBody bounds what is sent to an admin API, beside what is sent on to the door.
const mostBody = 16 << 20

// TryPath is where requests for the door begin, on an admin address.
const TryPath = "/api/try/"

// guard stands before an admin API.
type guard struct {
	cfg   configs.Admin
	unix  bool
	peer  string // the token of other doors
	codes codes
	next  http.Handler
}

// Guard turns away whoever may not ask an admin API: without the token, from a
// page of another origin, or by a name that somebody has pointed at this
// address. It hands out one-time codes and takes them.
func Guard(cfg configs.Admin, next http.Handler) http.Handler {
	return &guard{cfg: cfg, unix: strings.HasPrefix(cfg.Listen, "unix://"), peer: PeerToken(cfg.Token.Reveal()), codes: newCodes(), next: next}
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	web.Protect(w.Header())
	w.Header().Set("Cache-Control", "no-store") // the console's files say otherwise for themselves
	if why := g.elsewhere(r); why != "" {
		Fail(w, http.StatusForbidden, why)
		return
	}
	page := isPage(r)
	code, session := r.Method == http.MethodPost && r.URL.Path == "/api/code", r.Method == http.MethodPost && r.URL.Path == "/api/session"
	switch {
	case (page || code || session) && g.cfg.Console == "off":
		Fail(w, http.StatusNotFound, `there is no console here: admin.console is "off"`)
		return
	case page:
		g.next.ServeHTTP(w, r)
		return
	case session:
		g.exchange(w, r)
		return
	}
	a, ok := g.admit(r)
	if !ok {
		slowly(r.Context())
		w.Header().Set("WWW-Authenticate", "Bearer")
		Fail(w, http.StatusUnauthorized, "the admin API asks for admin.token as a bearer token, or for the one that `roundhouse console` gives a browser for a while")
		return
	}
	if code && a.rights != Peer {
		g.code(w, a.rights)
		return
	}
	if why := g.forbidden(r, a.rights); why != "" {
		Fail(w, http.StatusForbidden, why)
		return
	}
	if !strings.HasPrefix(r.URL.Path, TryPath) { // the door has limits of its own
		r.Body = http.MaxBytesReader(w, r.Body, mostBody)
	}
	g.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), admittedKey{}, a)))
}

// admitted is as whom somebody asks, and until when.
type admitted struct {
	rights Rights
	until  time.Time // zero: as long as he likes
}

type admittedKey struct{}

// Admitted tells which rights a request has that came past a guard, and when they
// end; zero: they do not.
func Admitted(ctx context.Context) (Rights, time.Time) {
	a, ok := ctx.Value(admittedKey{}).(admitted)
	if !ok {
		return Read, time.Time{}
	}
	return a.rights, a.until
}

// isPage reports whether a request is for the console's files, which are no secret.
func isPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	return r.URL.Path == "/" || r.URL.Path == "/ui" || strings.HasPrefix(r.URL.Path, "/ui/")
}

// elsewhere says why a request is none of this address's own: empty, if it may be.
func (g *guard) elsewhere(r *http.Request) string {
	switch {
	case !g.unix && !hostAllowed(r.Host, g.cfg.Listen):
		return "the Host header names neither this machine nor admin.listen"
	case !g.unix && !originAllowed(r.Header.Get("Origin"), r.Host):
		return "requests from pages of another origin are refused"
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
		return ""
	default:
		if isPage(r) && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			return "" // a link to the console, which a page can follow and not read
		}
		return "requests from pages of another origin are refused: Sec-Fetch-Site is " + site
	}
}

// fromBrowser reports whether a page sends a request: programs say none of this.
func fromBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

// forbidden says why somebody who is known may not do this; empty, if he may.
func (g *guard) forbidden(r *http.Request, rights Rights) string {
	switch {
	case rights == Peer && (r.Method != http.MethodPut || r.URL.Path != TotalsPath):
		return "a door's own token tells its totals and does nothing else; this takes admin.token"
	case rights == Peer, r.Method == http.MethodGet || r.Method == http.MethodHead:
		return ""
	case rights == Read:
		return "admin.read_token only reads; this takes admin.token"
	case !fromBrowser(r):
		return ""
	case g.cfg.Console == "read_only":
		return `the console only looks here: admin.console is "read_only"`
	case r.Header.Get(OperatorHeader) == "":
		return "a command from a browser needs the header " + OperatorHeader + ", which no form of another page can send"
	}
	return ""
}

// admit finds out who asks.
func (g *guard) admit(r *http.Request) (admitted, bool) {
	if g.cfg.Token == "" {
		return admitted{rights: Operator}, true
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !ok:
		return admitted{}, false
	case same(token, g.cfg.Token.Reveal()):
		return admitted{rights: Operator}, true
	case g.cfg.ReadToken != "" && same(token, g.cfg.ReadToken.Reveal()):
		return admitted{rights: Read}, true
	case same(token, g.peer):
		return admitted{rights: Peer}, true
	}
	return g.session(token, time.Now())
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// slowly lets whoever guesses wait.
func slowly(ctx context.Context) {
	t := time.NewTimer(wrongToken)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// hostAllowed takes addresses, localhost and the configured name; any other
// name may be one that an attacker's DNS points here.
func hostAllowed(host, listen string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if _, err := netip.ParseAddr(name); err == nil || strings.EqualFold(name, "localhost") {
		return true
	}
	configured, _, err := net.SplitHostPort(listen)
	return err == nil && configured != "" && strings.EqualFold(name, configured)
}

func originAllowed(origin, host string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
