//go:build clients

package balancer_test

import (
	"os/exec"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// httpxTwice asks for an answer and a stream with httpx, twenty at once on one connection.
const httpxTwice = `
import asyncio, sys, httpx
url, kind = sys.argv[1:]
async def main():
    async with httpx.AsyncClient(http1=kind == "tls", http2=True, verify=False, timeout=60) as c:
        async def one(stream):
            body = {"model": "sim", "stream": stream, "messages": [{"role": "user", "content": "x"}]}
            async with c.stream("POST", url + "/v1/chat/completions", json=body) as r:
                text = (await r.aread()).decode()
            assert r.http_version == "HTTP/2", r.http_version
            assert r.status_code == 200 and "19 " in text and (not stream or text.endswith("data: [DONE]\n\n")), text
        await asyncio.gather(*[one(i % 2 == 0) for i in range(20)])
asyncio.run(main())
print("whole")
`

// TestClientsHTTP2: curl and httpx speak HTTP/2 with the door, with TLS and without.
func TestClientsHTTP2(t *testing.T) {
	files, _ := certificate(t)
	for _, kind := range []string{"plain", "tls"} {
		r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true, Words: 20})}, func(s *control.WorkerSet) {
			if s.Door.HTTP2 = true; kind == "tls" {
				s.Door.TLS = files
			}
		})
		args := []string{"-sS", "-i", "-N", "--http2-prior-knowledge"}
		if kind == "tls" {
			r.url = strings.Replace(r.url, "http:", "https:", 1)
			args = []string{"-sS", "-i", "-N", "--http2", "-k"}
		}
		out, err := exec.Command("curl", append(args, "-H", "Content-Type: application/json", "-d", strings.Replace(okBody, `{`, `{"stream":true,`, 1), r.url+"/v1/chat/completions")...).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "HTTP/2 200") || !strings.HasSuffix(string(out), "data: [DONE]\n\n") {
			t.Errorf("curl, %s: %v\n%s", kind, err, out)
		}
		out, err = exec.Command("../build/clients/python/bin/python", "-c", httpxTwice, r.url, kind).CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), "whole\n") {
			t.Errorf("httpx, %s: %v\n%s", kind, err, out)
		}
	}
}
