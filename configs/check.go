package configs

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"roundhouse/configs/near"
)

// Names go into metrics, host names, container names and paths.
var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

var policies = []string{"least_kv", "fastest", "least_inflight", "round_robin"}

// check reports what no block can know alone, of the blocks that could be read.
func (d *decoder) check(c *Config) {
	whole := len(d.diags) == 0
	if !d.unsound["door"] {
		d.checkDoor(c)
	}
	if !d.unsound["door"] && !d.unsound["admin"] {
		d.checkAdmin(c)
	}
	if !filepath.IsAbs(c.StateDir) {
		d.failf("state_dir", "state_dir is %s; it is an absolute path, so that it stays the same wherever roundhouse is started", d.show("state_dir", c.StateDir))
	}
	for i := range c.Pools {
		if !d.unsound[labelled("pool", c.Pools[i].Name)] {
			d.checkPool(c, &c.Pools[i])
		}
	}
	if len(c.Pools) == 0 && whole {
		d.diags = append(d.diags, Diagnostic{File: d.file, Message: `has no pool, so nothing could be served; the least is pool "chat" {}`})
	}
	if whole {
		d.checkPlaces(c)
		d.checkRoutes(c)
	}
	for _, p := range c.Plugins {
		if !d.unsound[labelled("plugin", p.Name)] {
			d.checkPlugin(p)
		}
	}
	if e := c.OTLP.Endpoint; e != "" && !goodURL(e) {
		d.failf("otlp/endpoint", `endpoint is %s; write one such as "http://127.0.0.1:4318"`, d.show("otlp/endpoint", e))
	}
}

func (d *decoder) checkDoor(c *Config) {
	if _, _, err := splitListen(c.Door.Listen); err != nil {
		d.failf("door/listen", "listen is %s: %v", d.show("door/listen", c.Door.Listen), err)
	}
	d.checkPolicy(c, "door/policy", c.Door.Policy)
	if t := c.Door.TLS; t != nil && (t.Cert == "" || t.Key == "") {
		d.failf("door/tls", "tls takes both cert and key")
	}
	l := c.Door.Limits
	if l.Body > c.Door.Memory {
		d.failf("door/limits/body", "body is %s, more than the %s of door memory that hold all bodies: one such request could never be taken", l.Body, c.Door.Memory)
	}
	if c.Door.Queue.MaxWait > l.FirstByte {
		d.failf("door/queue/max_wait", "max_wait is %s, longer than limits first_byte, %s: a request would end before its wait does", c.Door.Queue.MaxWait, l.FirstByte)
	}
	for _, origin := range c.Door.CORS.Origins {
		u, err := url.Parse(origin)
		if origin != "*" && (err != nil || u.Host == "" || u.Path != "" || u.Scheme != "http" && u.Scheme != "https") {
			d.failf("door/cors/origins", `%q is not an origin; write one such as "https://app.example", without a path, or "*"`, origin)
		}
	}
	for _, peer := range c.Door.Peers {
		if _, _, err := net.SplitHostPort(strings.TrimPrefix(peer, "http://")); err != nil {
			d.failf("door/peers", `%q is not the admin API of a door; write host:port`, peer)
		}
	}
	for name, list := range map[string][]string{"trusted_proxies": c.Door.TrustedProxies, "proxy_protocol": c.Door.ProxyProtocol} {
		for _, proxy := range list {
			if _, err := ParsePrefix(proxy); err != nil {
				d.failf("door/"+name, "%v", err)
			}
		}
	}
	if l := c.Door.LogRequests; l != nil {
		if !filepath.IsAbs(l.Path) {
			d.failf("door/log_requests", "path is %s; write an absolute path, in a folder that the door may write to", d.show("door/log_requests/path", l.Path))
		}
		if l.Body > 1<<20 {
			d.failf("door/log_requests/body", "body is %s; a text has 1MiB at most", l.Body)
		}
	}
	d.checkKeys(c)
}

func (d *decoder) checkKeys(c *Config) {
	if _, err := c.Door.BudgetZone(); err != nil {
		d.failf("door/budget_timezone", `budget_timezone is %s; write an IANA name such as "Europe/Berlin"`, d.show("door/budget_timezone", c.Door.BudgetTimezone))
	}
	owner := map[string]string{}
	for _, k := range c.Door.Keys {
		path := sub("door", labelled("key", k.Name))
		if len(k.SHA256) == 0 {
			d.failf(path, "key %q has no sha256, so nothing would open it; `roundhouse key %s` prints a key and its block", k.Name, k.Name)
		}
		for _, sum := range k.SHA256 {
			if !goodSum(sum) {
				d.failf(sub(path, "sha256"), "sha256 holds what is not 64 hexadecimal digits; `roundhouse key %s` prints a key and its block", k.Name)
				continue
			}
			if other := owner[strings.ToLower(sum)]; other != "" {
				d.failf(sub(path, "sha256"), "key %q and key %q have the same sha256: one client would be two", other, k.Name)
			}
			owner[strings.ToLower(sum)] = k.Name
		}
		if len(k.Models) == 0 {
			d.failf(sub(path, "models"), `models is empty, so the key could ask for nothing; "*" is all`)
		}
		if _, err := k.Expiry(); err != nil {
			d.failf(sub(path, "expires"), `expires is %s; write a time such as "2027-01-31T00:00:00Z"`, d.show(sub(path, "expires"), k.Expires))
		}
		for _, name := range k.Pools {
			if !d.unsound[labelled("pool", name)] && !slices.ContainsFunc(c.Pools, func(p Pool) bool { return p.Name == name }) {
				d.failf(sub(path, "pools"), "there is no pool %q", name)
			}
		}
	}
}

func (d *decoder) checkAdmin(c *Config) {
	listen := c.Admin.Listen
	switch read := c.Admin.ReadToken; {
	case read != "" && c.Admin.Token == "":
		d.failf("admin/read_token", "read_token without token: whoever has neither could do everything; set token too")
	case read != "" && read == c.Admin.Token:
		d.failf("admin/read_token", "read_token is token: whoever reads could do everything; give it another value")
	}
	if path, ok := strings.CutPrefix(listen, "unix://"); ok {
		if !filepath.IsAbs(path) {
			d.failf("admin/listen", "listen is %s; after unix:// stands an absolute path", d.show("admin/listen", listen))
		}
		return
	}
	host, port, err := splitListen(listen)
	if err != nil {
		d.failf("admin/listen", "listen is %s: %v", d.show("admin/listen", listen), err)
		return
	}
	if c.Admin.Token == "" && !loopback(host) {
		d.failf("admin/listen", "whoever reaches %s could stop every worker: set admin token, or listen on 127.0.0.1 or a unix socket", d.show("admin/listen", listen))
	}
	if doorHost, doorPort, err := splitListen(c.Door.Listen); err == nil && port != 0 && port == doorPort && overlap(host, doorHost) {
		d.failf("admin/listen", "the admin API and the door both listen on port %d", port)
	}
}

// splitListen reads "host:port" or ":port".
func splitListen(s string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(s)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf(`write ":8000" or "127.0.0.1:8000"`)
	}
	return host, port, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// overlap reports whether two listening hosts can be the same address.
func overlap(a, b string) bool {
	everywhere := func(h string) bool { ip := net.ParseIP(h); return h == "" || ip != nil && ip.IsUnspecified() }
	return a == b || everywhere(a) || everywhere(b) || loopback(a) && loopback(b)
}

func goodURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

func (d *decoder) checkPolicy(c *Config, path, policy string) {
	d.checkNamed(c, path, policy, "policy", policies)
}

// checkNamed checks a policy or a driver: a known word, or "plugin:<name>" of
// a plugin of that kind.
func (d *decoder) checkNamed(c *Config, path, name, kind string, known []string) {
	if plugin, ok := strings.CutPrefix(name, "plugin:"); ok {
		i := slices.IndexFunc(c.Plugins, func(p Plugin) bool { return p.Name == plugin })
		switch {
		case len(d.unsound) > 0: // it may be one of those
		case i < 0:
			d.failf(path, "there is no plugin %q", plugin)
		case c.Plugins[i].Kind != kind:
			d.failf(path, "plugin %q is a %s, not a %s", plugin, c.Plugins[i].Kind, kind)
		}
		return
	}
	if slices.Contains(known, name) {
		return
	}
	message := fmt.Sprintf("%s is %s; it is one of %s, plugin:<name>", kind, d.show(path, name), strings.Join(known, ", "))
	if meant := near.Name(name, known); meant != "" && !d.hidden[path] {
		message += fmt.Sprintf("; did you mean %q?", meant)
	}
	d.failf(path, "%s", message)
}

func (d *decoder) checkPlugin(p Plugin) {
	path := labelled("plugin", p.Name)
	if !goodName.MatchString(p.Name) {
		d.failf(path, "plugin %q: a name is letters, digits, dots, dashes and underscores", p.Name)
	}
	for _, need := range []struct{ name, value string }{{"kind", p.Kind}, {"path", p.Path}} {
		if need.value == "" {
			d.failf(path, "plugin %q has no %s", p.Name, need.name)
		}
	}
	if raw, err := hex.DecodeString(p.SHA256); err != nil || len(raw) != 32 {
		d.failf(sub(path, "sha256"), "plugin %q: sha256 is the 64 hexadecimal digits of its binary (sha256sum FILE); without them anything put there would run", p.Name)
	}
}
