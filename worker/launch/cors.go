package launch

import (
	"net/http"
	"slices"
	"strings"
)

// CORS is what pages of other origins may do. Without origins there is no
// header of it at all, and browsers keep such pages out.
type CORS struct {
	Origins, Methods, Headers []string // "*": all
	Credentials               bool
}

// Methods that "*" stands for, and headers that need no leave.
var (
	allMethods  = []string{"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}
	safeHeaders = []string{"Accept", "Accept-Language", "Content-Language", "Content-Type"}
)

func allows(list []string, v string) bool {
	return slices.Contains(list, "*") || slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, v) })
}

// wrap puts the headers before h, and answers what browsers ask beforehand.
func (c *CORS) wrap(h http.Handler) http.Handler {
	if len(c.Origins) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin == "" {
			h.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			c.preflight(w, r, origin)
			return
		}
		c.origin(w, origin, r.Header.Get("Cookie") != "")
		h.ServeHTTP(w, r)
	})
}

// origin reports whether pages of an origin may read the answer.
func (c *CORS) origin(w http.ResponseWriter, origin string, personal bool) bool {
	if !allows(c.Origins, origin) {
		return false
	}
	if slices.Contains(c.Origins, "*") && !personal {
		w.Header().Set("Access-Control-Allow-Origin", "*")
	} else {
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Add("Vary", "Origin")
	}
	if c.Credentials {
		w.Header().Set("Access-Control-Allow-Credentials", "true")
	}
	return true
}

// preflight answers what a browser asks before a request of another origin.
func (c *CORS) preflight(w http.ResponseWriter, r *http.Request, origin string) {
	var wrong []string
	if !c.origin(w, origin, c.Credentials) {
		wrong = append(wrong, "origin")
	}
	methods := c.Methods
	if slices.Contains(methods, "*") {
		methods = allMethods
	}
	if !allows(methods, r.Header.Get("Access-Control-Request-Method")) {
		wrong = append(wrong, "method")
	}
	asked := r.Header.Get("Access-Control-Request-Headers")
	headers := slices.Concat(safeHeaders, c.Headers)
	for name := range strings.SplitSeq(asked, ",") {
		if name = strings.TrimSpace(name); name != "" && !allows(headers, name) {
			wrong = append(wrong, "headers")
			break
		}
	}
	w.Header().Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
	w.Header().Set("Access-Control-Max-Age", "600")
	if !slices.Contains(c.Headers, "*") {
		asked = strings.Join(headers, ", ")
	}
	if asked != "" {
		w.Header().Set("Access-Control-Allow-Headers", asked)
	}
	if len(wrong) > 0 {
		http.Error(w, "Disallowed CORS "+strings.Join(wrong, ", "), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("OK"))
}

// belowRoot takes the path of a proxy off the front of requests, where the
// proxy has left it.
func belowRoot(root string, h http.Handler) http.Handler {
	root = strings.TrimRight(root, "/")
	if root == "" {
		return h
	}
	stripped := http.StripPrefix(root, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, root+"/") {
			stripped.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
