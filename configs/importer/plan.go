package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plan is the configuration that is being made.
type plan struct {
	source string
	listen string
	keys   []string // of clients, as they were given to the engines
	limits []string // lines of the limits block
	pools  []pool
	notes  []string
	about  map[string][]string // note → the services that it is about
}

// note says what changed or was not carried over, once.
func (p *plan) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.notes, text) {
		p.notes = append(p.notes, text)
	}
}

// noteOn is note of something that several services may have in common.
func (p *plan) noteOn(service, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.note("%s", text)
	if p.about == nil {
		p.about = map[string][]string{}
	}
	if !slices.Contains(p.about[text], service) {
		p.about[text] = append(p.about[text], service)
	}
}

// said are the notes as they are shown.
func (p *plan) said() []string {
	out := slices.Clone(p.notes)
	for i, n := range out {
		if who := p.about[n]; len(who) > 0 {
			out[i] = strings.Join(who, ", ") + ": " + n
		}
	}
	return out
}

// pool is one pool that is being made.
type pool struct {
	name   string
	driver string
	count  int // of workers without a block of their own
	gpus   int // a worker; 0: not said

	model       string
	served      []string
	quant       string
	maxLen      string
	args        []string
	environment map[string]string

	image, shm, network, ipc, user string
	entrypoint, volumes, networks  []string
	init                           bool
	ulimits                        map[string]string
	labels                         map[string]string
	confinement                    confinement

	workers []worker
	rotate  string // why it has a schedule; empty: it has none
}

// worker is one worker block.
type worker struct {
	name, takeover, url string
	port                int
	gpus                []string
	comment             string
}

// hcl writes the plan.
func (p *plan) hcl() string {
	w := &writer{}
	w.comment("# ", "# ", "Made by `roundhouse import` from "+p.source+".")
	w.line("# `roundhouse validate FILE` checks it, `roundhouse up -c FILE` runs it.")
	if len(p.notes) > 0 {
		w.line("#\n# What changed, and what was not carried over:")
		for _, n := range p.said() {
			w.comment("# - ", "#   ", n)
		}
	}
	w.line("")
	w.open("door")
	w.line("listen = %s", quote(p.listen))
	if len(p.limits) > 0 {
		w.open("limits")
		for _, l := range p.limits {
			w.line("%s", l)
		}
		w.close()
	}
	for i, key := range p.keys {
		sum := sha256.Sum256([]byte(key))
		w.open(fmt.Sprintf("key %q", fmt.Sprintf("imported-%d", i+1)))
		w.line("sha256 = [%q]", hex.EncodeToString(sum[:]))
		w.close()
	}
	w.close()
	for _, one := range p.pools {
		w.line("")
		one.write(w)
	}
	return w.String()
}

func (p *pool) write(w *writer) {
	w.open(fmt.Sprintf("pool %q", p.name))
	w.line("driver = %s", quote(p.driver))
	if p.count > 0 {
		w.line("workers = %d", p.count)
	}
	if p.gpus > 1 {
		w.line("gpus_per_worker = %d", p.gpus)
	}
	w.text("image", p.image)
	w.list("entrypoint", p.entrypoint)
	w.list("volumes", p.volumes)
	w.text("shm_size", p.shm)
	w.text("network_mode", p.network)
	w.list("networks", p.networks)
	w.text("ipc", p.ipc)
	if p.init {
		w.line("init = true")
	}
	w.text("user", p.user)
	w.bare("ulimits", p.ulimits)
	w.texts("labels", p.labels)
	p.confinement.write(w)
	p.writeEngine(w)
	if p.rotate != "" {
		w.line("")
		w.open("rotation")
		w.comment("# ", "# ", p.rotate)
		w.line(`schedule = "0 3 * * *"`)
		w.close()
	}
	for _, one := range p.workers {
		w.line("")
		w.open(fmt.Sprintf("worker %q", one.name))
		if one.comment != "" {
			w.comment("# ", "# ", one.comment)
		}
		w.text("url", one.url)
		w.list("gpus", one.gpus)
		if one.port != 0 {
			w.line("port = %d", one.port)
		}
		if one.takeover != "" {
			w.line("takeover = %s # it runs already: served as it is, replaced at its first turn", quote(one.takeover))
		}
		w.close()
	}
	w.close()
}

func (p *pool) writeEngine(w *writer) {
	if p.driver == "static" || p.model == "" && len(p.args) == 0 && len(p.environment) == 0 {
		return
	}
	w.line("")
	w.open("engine")
	w.text("model", p.model)
	w.list("served_model_name", p.served)
	w.text("quantization", p.quant)
	if p.maxLen != "" {
		w.line("max_model_len = %s", p.maxLen)
	}
	w.list("args", p.args)
	w.texts("environment", p.environment)
	w.close()
}

// writer writes HCL; Format puts it in columns.
type writer struct{ strings.Builder }

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
func (w *writer) open(head string)                { w.line("%s {", head) }
func (w *writer) close()                          { w.line("}") }

func (w *writer) text(name, value string) {
	if value != "" {
		w.line("%s = %s", name, quote(value))
	}
}

func (w *writer) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	w.line("%s = [%s]", name, strings.Join(quoted, ", "))
}

func (w *writer) texts(name string, m map[string]string) {
	quoted := map[string]string{}
	for k, v := range m {
		quoted[k] = quote(v)
	}
	w.bare(name, quoted)
}

func (w *writer) bare(name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	w.line("%s = {", name)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.line("%s = %s", quote(k), m[k])
	}
	w.line("}")
}

// comment writes text in lines of some hundred characters.
func (w *writer) comment(first, next, text string) {
	line := first
	for i, word := range strings.Fields(strings.Map(visible, text)) {
		if i > 0 && len(line)+len(word) > 100 {
			w.line("%s", strings.TrimRight(line, " "))
			line = next
		}
		line += word + " "
	}
	w.line("%s", strings.TrimRight(line, " "))
}

// visible keeps what a source holds from breaking out of a comment.
func visible(r rune) rune {
	if r == utf8.RuneError || !unicode.IsPrint(r) {
		return ' '
	}
	return r
}

// quote writes a string of HCL, in which ${ and %{ begin a template.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	s = strings.ToValidUTF8(s, "?")
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case (r == '$' || r == '%') && strings.HasPrefix(s[i+1:], "{"):
			b.WriteRune(r)
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
