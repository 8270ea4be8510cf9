package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// serveStandard is the same engine by net/http, without streams.
func serveStandard(addr string) error {
	serve := func(path, answer string) {
		http.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // an answer to a request that was cut off goes nowhere
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		})
	}
	serve("/v1/models", models)
	serve("/metrics", gauges)
	serve("/", string(jsonAnswer))
	return http.ListenAndServe(addr, nil)
}

// serveUpstream is an engine that computes nothing: one JSON answer, or a
// stream whose length and pace the request's "user" field gives as
// "EVENTS,PACE".
func serveUpstream(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go serveConn(c)
	}
}

const (
	models = `{"object":"list","data":[{"id":"sim","max_model_len":1000000}]}`
	gauges = "vllm:kv_cache_usage_perc 0\nvllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"10000000\"} 1\n"
)

var (
	jsonAnswer = []byte(`{"id":"cmpl-1","object":"chat.completion","created":1700000000,"model":"sim","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("lorem ipsum ", 40) + `"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":250,"total_tokens":350,"completion_tokens":100}}`)
	oneEvent = `data: {"id":"cmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"sim","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	idEvent  = `data: {"id":"cmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"sim","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":[1234]}]}` + "\n\n"
	lastPart = "data: [DONE]\n\n"
)

func chunkOf(s string) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(s), s) }

func serveConn(c net.Conn) {
	defer c.Close()
	br := bufio.NewReaderSize(c, 16<<10)
	for {
		path, body, err := readRequest(br)
		if err != nil {
			return
		}
		switch {
		case path == "/v1/models":
			err = reply(c, models)
		case path == "/metrics":
			err = reply(c, gauges)
		case bytes.Contains(body[:min(len(body), 2048)], []byte(`"stream":true`)):
			err = stream(c, body)
		default:
			err = reply(c, string(jsonAnswer))
		}
		if err != nil {
			return
		}
	}
}

func readRequest(br *bufio.Reader) (path string, body []byte, err error) {
	line, err := br.ReadSlice('\n')
	if err != nil {
		return "", nil, err
	}
	if f := bytes.Fields(line); len(f) > 1 {
		path = string(f[1])
	}
	length := 0
	for {
		line, err := br.ReadSlice('\n')
		if err != nil {
			return "", nil, err
		}
		if len(line) <= 2 {
			break
		}
		if v, ok := bytes.CutPrefix(bytes.ToLower(line), []byte("content-length:")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
		}
	}
	body = make([]byte, length)
	_, err = io.ReadFull(br, body)
	return path, body, err
}

func reply(c net.Conn, body string) error {
	_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// stream sends events, each by a write of its own, as engines do.
func stream(c net.Conn, body []byte) error {
	events, pace := 100, time.Duration(0)
	if _, spec, ok := bytes.Cut(body[:min(len(body), 2048)], []byte(`"user":"`)); ok {
		n, p, _ := strings.Cut(string(spec[:bytes.IndexByte(spec, '"')]), ",")
		events, _ = strconv.Atoi(n)
		pace, _ = time.ParseDuration(p)
	}
	event := chunkOf(oneEvent)
	if bytes.Contains(body[:min(len(body), 2048)], []byte(`"return_token_ids":true`)) {
		event = chunkOf(idEvent)
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		return err
	}
	for range events {
		if pace > 0 {
			time.Sleep(pace)
		}
		if _, err := c.Write(event); err != nil {
			return err
		}
	}
	_, err := c.Write(append(chunkOf(lastPart), "0\r\n\r\n"...))
	return err
}
