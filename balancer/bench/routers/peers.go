package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"roundhouse/measure/bench"
)

// router is one of those that are compared.
type router struct {
	name   string
	policy string // in simulated time; "": none is like it
	rest   bool   // only with -all, or if it is asked for
	// command returns what starts it at an address, in front of engines; dir is for its files.
	command func(o options, dir, addr string, engines []string) (*exec.Cmd, error)
}

// routers are all that are compared, ours first.
func routers() []router {
	var all []router
	for _, p := range []string{"least_kv", "fastest", "least_inflight", "round_robin"} {
		all = append(all, router{"door " + p, p, p != "least_kv", door(p)})
	}
	all = append(all, router{"nginx least_conn", "least request", false, nginx}, router{"HAProxy leastconn", "least request", false, haproxy})
	for _, p := range []string{"cache_aware", "power_of_two", "round_robin", "random", "consistent_hash", "sticky_least_loaded"} {
		all = append(all, router{"vllm-router " + p, simulatedAs[p], p != "cache_aware" && p != "power_of_two", python("vllm-router", nil, p)})
	}
	for _, p := range []string{"cache_aware", "power_of_two", "round_robin", "random", "manual"} {
		all = append(all, router{"sglang-router " + p, simulatedAs[p], p != "cache_aware" && p != "power_of_two", python("python", []string{"-m", "sglang_router.launch_router"}, p)})
	}
	return all
}

// simulatedAs are the policies of the simulator that stand for the others' own.
var simulatedAs = map[string]string{"cache_aware": "cache aware", "power_of_two": "power of two", "round_robin": "round robin", "random": "random"}

func door(policy string) func(options, string, string, []string) (*exec.Cmd, error) {
	return func(o options, dir, addr string, engines []string) (*exec.Cmd, error) {
		var conf strings.Builder
		fmt.Fprintf(&conf, "admin {\n  listen = %q\n}\ndoor {\n  listen = %q\n}\nlog {\n  access = false\n  level = \"error\"\n}\npool \"p\" {\n  driver = \"static\"\n  policy = %q\n", freeAddr(), addr, policy)
		for i, url := range engines {
			fmt.Fprintf(&conf, "  worker \"w%d\" {\n    url = %q\n  }\n", i, url)
		}
		conf.WriteString("}\n")
		path := filepath.Join(dir, "door.hcl")
		return exec.Command(o.door, "balance", "-c", path), os.WriteFile(path, []byte(conf.String()), 0o600)
	}
}

func nginx(_ options, dir, addr string, engines []string) (*exec.Cmd, error) {
	var servers strings.Builder
	for _, url := range engines {
		fmt.Fprintf(&servers, "server %s; ", strings.TrimPrefix(url, "http://"))
	}
	conf := fmt.Sprintf(`worker_processes 2; pid %[1]s/pid; error_log stderr crit; daemon off;
events { worker_connections 16384; }
http {
  access_log off; client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
  client_max_body_size 64m; client_body_buffer_size 512k;
  upstream engines { zone engines 256k; least_conn; %[2]s keepalive 1024; }
  server {
    listen %[3]s backlog=4096;
    location / { proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 600s; }
  }
}
`, dir, servers.String(), addr)
	path := filepath.Join(dir, "nginx.conf")
	return exec.Command("nginx", "-p", dir, "-c", path), os.WriteFile(path, []byte(conf), 0o600)
}

func haproxy(_ options, dir, addr string, engines []string) (*exec.Cmd, error) {
	var servers strings.Builder
	for i, url := range engines {
		fmt.Fprintf(&servers, "  server e%d %s check inter 1s\n", i, strings.TrimPrefix(url, "http://"))
	}
	conf := fmt.Sprintf(`global
  nbthread 2
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  option http-keep-alive
  http-reuse always
frontend door
  bind %s backlog 4096
  default_backend engines
backend engines
  balance leastconn
%s`, addr, servers.String())
	path := filepath.Join(dir, "haproxy.cfg")
	return exec.Command("haproxy", "-q", "-f", path), os.WriteFile(path, []byte(conf), 0o600)
}

// python is a router that comes as a Python package.
func python(program string, first []string, policy string) func(options, string, string, []string) (*exec.Cmd, error) {
	return func(o options, _, addr string, engines []string) (*exec.Cmd, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		_, metrics, err := net.SplitHostPort(freeAddr())
		if err != nil {
			return nil, err
		}
		args := append(append([]string{}, first...), "--host", host, "--port", port, "--policy", policy, "--log-level", "error", "--prometheus-port", metrics,
			"--worker-startup-check-interval", "1", "--worker-urls")
		return exec.Command(filepath.Join(o.peers, "bin", program), append(args, engines...)...), nil
	}
}

// installed reports whether a router's program is there.
func installed(r *router, o options) bool {
	cmd, err := r.command(o, os.TempDir(), "127.0.0.1:1", nil)
	if err != nil {
		return false
	}
	_, err = exec.LookPath(cmd.Path)
	return err == nil
}

func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// awaitServing waits until a router answers requests: several, so that each engine has
// been asked.
func awaitServing(ctx context.Context, c *bench.Client) error {
	began := time.Now()
	good := 0
	for {
		var s bench.Sample
		c.Do(ctx, &bench.Request{Prompt: fmt.Sprintf("warm up %d", good), Output: 1}, &s, func() time.Duration { return time.Since(began) })
		if s.OK() {
			if good++; good == 12 {
				return nil
			}
			continue
		}
		if time.Since(began) > 40*time.Second || ctx.Err() != nil {
			return fmt.Errorf("it does not serve: %s", s.Err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// end ends a process, by force if it takes more than two seconds.
func end(cmd *exec.Cmd) {
	cmd.Process.Signal(os.Interrupt)
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		cmd.Process.Kill()
		<-done
	}
}
