package importer

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"roundhouse/configs"
)

// server is one server of a proxy's backend.
type server struct{ name, address string }

// backend is a proxy's list of servers.
type backend struct {
	name    string
	servers []server
}

// haproxy plans for an haproxy.cfg: its backends become static pools.
func (p *plan) haproxy(src string) error {
	binds, backends := p.readHAProxy(src)
	p.front(binds)
	return p.static(backends)
}

// readHAProxy reads what matters of an haproxy.cfg, and notes the rest that
// someone might miss.
func (p *plan) readHAProxy(src string) (binds []string, backends []backend) {
	section := ""
	for line := range strings.Lines(src) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "global", "defaults", "frontend", "backend", "listen", "userlist", "peers", "resolvers":
			section = words[0]
			if (section == "backend" || section == "listen") && len(words) > 1 {
				backends = append(backends, backend{name: words[1]})
			}
		case "bind":
			if len(words) > 1 && (section == "frontend" || section == "listen") {
				binds = append(binds, words[1])
				if slices.Contains(words, "accept-proxy") {
					p.note("bind … accept-proxy: name the proxy before it in the door's proxy_protocol.")
				}
				if slices.Contains(words, "ssl") {
					p.note("bind … ssl: put the certificate into the door's tls block (cert and key, two files).")
				}
			}
		case "server":
			if len(words) > 2 && len(backends) > 0 {
				last := &backends[len(backends)-1]
				last.servers = append(last.servers, server{words[1], words[2]})
				p.noteServer(words[3:])
			}
		case "server-template":
			if len(words) > 3 && len(backends) > 0 {
				last := &backends[len(backends)-1]
				last.servers = append(last.servers, server{words[1] + "1", words[3]})
				p.note("server-template %s %s: %s may stand for several addresses; write one worker block for each.", words[1], words[2], words[3])
				p.noteServer(words[4:])
			}
		default:
			p.noteHAProxy(words)
		}
	}
	return binds, slices.DeleteFunc(backends, func(b backend) bool { return len(b.servers) == 0 })
}

// noteServer tells what of a server's words has no counterpart.
func (p *plan) noteServer(words []string) {
	for i, w := range words {
		switch w {
		case "backup":
			p.note("server … backup: every worker serves; the others carry on when one is out.")
		case "weight", "maxconn":
			if i+1 < len(words) {
				p.note("server … %s %s: the door weighs workers by what their KV cache holds, not by numbers in a file.", w, words[i+1])
			}
		case "ssl":
			p.note("server … ssl: write https:// into the worker's url, if its certificate is one that this machine trusts.")
		}
	}
}

func (p *plan) noteHAProxy(words []string) {
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "balance":
		p.note("balance %s chose a server for each connection; the door chooses a worker for each request, the one whose KV cache will be least full.", rest)
	case "mode":
		if rest == "tcp" {
			p.note("mode tcp: the door speaks HTTP, so a worker that fails is tried elsewhere and a client gets an answer, not a closed socket.")
		}
	case "stats":
		if strings.Contains(rest, "socket") && strings.Contains(rest, "admin") {
			p.note("stats socket: `roundhouse drain`, `undrain` and `ps` take its place, on 127.0.0.1 alone.")
		}
	case "maxconn":
		p.note("maxconn %s: the door takes 20000 connections and queues 2048 requests; limits and queue blocks change that.", rest)
	case "timeout":
		if len(words) == 3 && (words[1] == "server" || words[1] == "client") {
			if d, err := configs.ParseDuration(haTime(words[2])); err == nil && d > configs.Duration(600e9) {
				p.limit("idle", d)
				p.limit("first_byte", d)
			}
		}
	case "default-server":
		p.note("default-server %s: a worker is used once it is healthy and has answered one real request, left when it refuses connections or computes nothing, and after a start comes to its full share within slow_start, 30s unless the door block says otherwise.", rest)
	case "log", "option":
		if words[0] == "log" || rest == "tcplog" || rest == "httplog" {
			p.note("log: the door writes one line a request, without its prompt; log { access = false } ends that.")
		}
	case "stick-table", "stick", "cookie":
		p.note("%s: a route with sticky = \"session\", \"user\" or \"prefix\" takes its place.", words[0])
	case "acl", "use_backend", "http-request", "http-response":
		p.note("%s rules were not carried over; models choose their pool by name.", words[0])
	}
}

// limit raises a limit of the door above its default.
func (p *plan) limit(name string, d configs.Duration) {
	line := fmt.Sprintf("%s = %q", name, d)
	if !slices.Contains(p.limits, line) {
		p.limits = append(p.limits, line)
	}
}

// haTime reads HAProxy's times: a bare number is milliseconds, "d" days.
func haTime(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0 {
		return s + "ms"
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(s, "d")); err == nil {
		return strconv.Itoa(24*n) + "h"
	}
	return s
}

// front takes over the address that a proxy listened on.
func (p *plan) front(binds []string) {
	p.listen = ":8000"
	if len(binds) == 0 {
		return
	}
	host, port, err := net.SplitHostPort(strings.Replace(binds[0], "*:", ":", 1))
	if err != nil {
		p.note("bind %s was not understood; the door listens on :8000.", binds[0])
		return
	}
	p.listen = net.JoinHostPort(host, port)
	if host == "" || host == "0.0.0.0" {
		p.listen = ":" + port
	}
	if len(binds) > 1 {
		p.note("the proxy listened on %s; the door listens on the first.", strings.Join(binds, ", "))
	}
}

// static makes a pool of each backend whose servers somebody else runs.
func (p *plan) static(backends []backend) error {
	if len(backends) == 0 {
		return errors.New("no server in it")
	}
	for _, b := range backends {
		one := pool{name: cleanName(b.name), driver: "static"}
		for i, s := range b.servers {
			host, port, err := net.SplitHostPort(s.address)
			if err != nil {
				p.note("server %s: %q has no port that could be asked; it was left out.", s.name, s.address)
				continue
			}
			if host == "" || host == "0.0.0.0" {
				host = "127.0.0.1"
			}
			name := cleanName(s.name)
			if s.name == "" {
				name = fmt.Sprint(i + 1)
			}
			one.workers = append(one.workers, worker{name: name, url: "http://" + net.JoinHostPort(host, port)})
		}
		if len(one.workers) > 0 {
			p.pools = append(p.pools, one)
		}
	}
	p.note("The workers are run by somebody else (driver \"static\"): Roundhouse routes, resumes and watches, and restarts nothing. `roundhouse import` of their compose file lets it rotate them.")
	return nil
}

var (
	nginxUpstream = regexp.MustCompile(`(?s)upstream\s+(\S+)\s*\{(.*?)\}`)
	nginxServer   = regexp.MustCompile(`(?m)^\s*server\s+([^;]+);`)
	nginxListen   = regexp.MustCompile(`(?m)^\s*listen\s+([^;]+);`)
	nginxInclude  = regexp.MustCompile(`(?m)^\s*include\s+[^;]*conf[^;]*;`)
	nginxComment  = regexp.MustCompile(`(?m)#.*$`)
	nginxTimeout  = regexp.MustCompile(`(?m)^\s*proxy_read_timeout\s+([^;]+);`)
)

// nginx plans for an nginx configuration: its upstreams become static pools.
func (p *plan) nginx(src string) error {
	src = nginxComment.ReplaceAllString(src, "")
	src = strings.NewReplacer(";", ";\n", "{", "{\n", "}", "\n}\n").Replace(src) // one directive a line
	var backends []backend
	for _, m := range nginxUpstream.FindAllStringSubmatch(src, -1) {
		b := backend{name: m[1]}
		for _, s := range nginxServer.FindAllStringSubmatch(m[2], -1) {
			words := strings.Fields(s[1])
			address := strings.TrimPrefix(words[0], "http://")
			if strings.HasPrefix(address, "unix:") {
				p.note("server %s: a unix socket cannot be a worker's url; it was left out.", address)
				continue
			}
			if _, _, err := net.SplitHostPort(address); err != nil {
				address = net.JoinHostPort(address, "80")
			}
			b.servers = append(b.servers, server{address: address})
			for _, w := range words[1:] {
				p.note("server … %s: the door weighs workers by what their KV cache holds, not by numbers in a file.", w)
			}
		}
		for _, method := range []string{"least_conn", "ip_hash", "hash ", "random"} {
			if strings.Contains(m[2], method) {
				p.note("%s: the door chooses the worker whose KV cache will be least full.", strings.TrimSpace(method))
			}
		}
		backends = append(backends, b)
	}
	rest := nginxUpstream.ReplaceAllString(src, "")
	var binds []string
	for _, m := range nginxListen.FindAllStringSubmatch(rest, -1) {
		words := strings.Fields(m[1])
		if !strings.Contains(words[0], ":") {
			words[0] = ":" + words[0]
		}
		if slices.Contains(words, "ssl") {
			p.note("listen … ssl: put the certificate into the door's tls block (cert and key).")
		}
		binds = append(binds, words[0])
	}
	for _, m := range nginxTimeout.FindAllStringSubmatch(rest, -1) {
		value := strings.TrimSpace(m[1])
		if strings.IndexFunc(value, func(r rune) bool { return r < '0' || r > '9' }) < 0 {
			value += "s"
		}
		if d, err := configs.ParseDuration(value); err == nil && d > configs.Duration(600e9) {
			p.limit("idle", d)
			p.limit("first_byte", d)
		}
	}
	p.front(binds)
	if nginxInclude.MatchString(src) {
		p.note("include: the files that it names were not read; import `nginx -T`'s output instead.")
	}
	if strings.Contains(src, "proxy_buffering") {
		p.note("proxy_buffering off is not needed: streams pass as they come.")
	}
	return p.static(backends)
}

// cleanName makes a name of what somebody else called it.
func cleanName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, s)
	s = strings.TrimLeft(s, "-._")
	if s == "" {
		return "workers"
	}
	return s[:min(len(s), 63)]
}
