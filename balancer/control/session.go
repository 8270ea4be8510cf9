package control

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How long a code may be exchanged, how many may wait for that, and how long the token
// is good that it is exchanged for.
const (
	codeTime    = 30 * time.Second
	mostCodes   = 32
	sessionTime = 12 * time.Hour
)

// codes are handed out to be taken once.
type codes struct {
	mu   sync.Mutex
	open map[string]given
}

type given struct {
	rights Rights
	until  time.Time
}

func newCodes() codes { return codes{open: map[string]given{}} }

// give makes a code. The one that ends first makes room for it.
func (c *codes) give(rights Rights, now time.Time) (code string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := ""
	for k, g := range c.open {
		if g.until.Before(now) {
			delete(c.open, k)
		} else if first == "" || g.until.Before(c.open[first].until) {
			first = k
		}
	}
	if len(c.open) >= mostCodes {
		delete(c.open, first)
	}
	code, until = rand.Text(), now.Add(codeTime)
	c.open[code] = given{rights, until}
	return code, until
}

// take takes a code, which is then no more.
func (c *codes) take(code string, now time.Time) (Rights, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.open[code]
	delete(c.open, code)
	return g.rights, ok && now.Before(g.until)
}

// CodeShown answers POST /api/code.
type CodeShown struct {
	Schema  int       `json:"schema"`
	Code    string    `json:"code"`
	Expires time.Time `json:"expires"`
	Rights  Rights    `json:"rights"`
}

// SessionShown answers POST /api/session.
type SessionShown struct {
	Schema  int        `json:"schema"`
	Token   *string    `json:"token"` // null: none is needed
	Rights  Rights     `json:"rights"`
	Expires *time.Time `json:"expires"`
}

// code answers with a code of the asker's own rights.
func (g *guard) code(w http.ResponseWriter, rights Rights) {
	code, until := g.codes.give(rights, time.Now())
	reply(w, CodeShown{1, code, until.UTC(), rights})
}

// exchange takes a code for a token.
func (g *guard) exchange(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Code string `json:"code"`
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10))
	d.DisallowUnknownFields()
	if err := d.Decode(&ask); err != nil {
		Fail(w, http.StatusBadRequest, `the body is {"code": "…"}`)
		return
	}
	now := time.Now()
	rights, ok := g.codes.take(ask.Code, now)
	if !ok {
		slowly(r.Context())
		Fail(w, http.StatusForbidden, "this code is not good any more; `roundhouse console` gives a new one")
		return
	}
	shown := SessionShown{Schema: 1, Rights: rights}
	if g.cfg.Token != "" {
		until := now.Add(sessionTime).UTC().Truncate(time.Second)
		token := g.seal(rights, until)
		shown.Token, shown.Expires = &token, &until
	}
	reply(w, shown)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the asker may be gone
}

// sessionPrefix tells a session's token from those of the configuration.
const sessionPrefix = "rhs1."

// seal makes a session's token: the rights and their end, under a seal that admin.token
// alone can make. Nothing of it is kept, so that it outlives a restart, and whoever
// changes admin.token ends them all.
func (g *guard) seal(rights Rights, until time.Time) string {
	said := sessionPrefix + string(rights) + "." + strconv.FormatInt(until.Unix(), 36)
	return said + "." + g.mac(said)
}

func (g *guard) mac(said string) string {
	m := hmac.New(sha256.New, []byte(g.cfg.Token.Reveal()))
	m.Write([]byte("roundhouse console session\n" + said))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// session reads a session's token.
func (g *guard) session(token string, now time.Time) (admitted, bool) {
	at := strings.LastIndexByte(token, '.')
	if at < 0 || !strings.HasPrefix(token, sessionPrefix) || !hmac.Equal([]byte(token[at+1:]), []byte(g.mac(token[:at]))) {
		return admitted{}, false
	}
	rights, end, _ := strings.Cut(token[len(sessionPrefix):at], ".")
	unix, err := strconv.ParseInt(end, 36, 64)
	until := time.Unix(unix, 0)
	if err != nil || !now.Before(until) {
		return admitted{}, false
	}
	return admitted{Rights(rights), until}, true
}
