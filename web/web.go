package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed ui
var embedded embed.FS

// here stands in index.html for the folder that the files are served from, which
// is named for their content.
const here = "/ui/_/"

// asset is one file as it is sent.
type asset struct {
	kind        string
	plain, gzip []byte // gzip nil: it would not be smaller
}

// assets are all files, and the digest that names them together.
type assets struct {
	files  map[string]asset // by their path below ui
	digest string
}

// loaded makes the files ready once: they are part of the program.
var loaded = sync.OnceValue(func() assets {
	files, err := fs.Sub(embedded, "ui")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return load(files)
})

// Digest names the console's files by their content: another one is another console.
func Digest() string { return loaded().digest }

func load(files fs.FS) assets {
	a := assets{files: map[string]asset{}}
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		sum.Write([]byte(name + "\x00"))
		sum.Write(text)
		a.files[name] = asset{kind: kindOf(name), plain: text}
		return nil
	})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	a.digest = hex.EncodeToString(sum.Sum(nil)[:8])
	for name, f := range a.files {
		if name == "index.html" {
			f.plain = bytes.ReplaceAll(f.plain, []byte(here), []byte("/ui/"+a.digest+"/"))
		}
		f.gzip = zipped(f.plain)
		a.files[name] = f
	}
	return a
}

// kindOf is a file's content type. A machine's own table of types may be odd, and a
// script of another type is not run.
func kindOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		if kind := mime.TypeByExtension(ext); kind != "" {
			return kind
		}
		return "text/plain; charset=utf-8"
	}
}

func zipped(text []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if _, err := w.Write(text); err != nil {
		panic("BUG: " + err.Error())
	}
	if err := w.Close(); err != nil {
		panic("BUG: " + err.Error())
	}
	if b.Len() >= len(text) {
		return nil
	}
	return b.Bytes()
}

// policy is what a page of the console may do: run and show what comes from here, ask
// here, and make no markup of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Protect sets the headers that every answer of an admin address has.
func Protect(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// Handler serves the console at /ui/.
func Handler() http.Handler {
	m := http.NewServeMux()
	to := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ui/", http.StatusFound) }
	m.HandleFunc("GET /{$}", to)
	m.HandleFunc("GET /ui", to)
	m.HandleFunc("GET /ui/{$}", func(w http.ResponseWriter, r *http.Request) { loaded().serve(w, r, "index.html", false) })
	m.HandleFunc("GET /ui/{digest}/{file...}", func(w http.ResponseWriter, r *http.Request) {
		a := loaded()
		a.serve(w, r, r.PathValue("file"), r.PathValue("digest") == a.digest)
	})
	return m
}

// serve sends one file. What is named by its content stays for good; the page that
// names it is asked for anew each time.
func (a assets) serve(w http.ResponseWriter, r *http.Request, name string, forGood bool) {
	h := w.Header()
	Protect(h)
	h.Set("Content-Security-Policy", policy)
	h.Set("Permissions-Policy", "microphone=(self), camera=()")
	f, ok := a.files[name]
	if !ok {
		http.Error(w, "the console has no file "+name, http.StatusNotFound)
		return
	}
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache")
	if forGood {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Add("Vary", "Accept-Encoding")
	text := f.plain
	if f.gzip != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		text = f.gzip
	}
	_, _ = w.Write(text) // the asker may be gone
}
