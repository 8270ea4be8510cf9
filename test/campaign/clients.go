package campaign

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

const streamed = `{"model":"roundhouse-demo","stream":true,"temperature":0,"max_tokens":60,"messages":[{"role":"user","content":"Count from 1 to 9 by 1."}]}`

func request(body string, length int) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: door\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, body)
}

// Broken is a client that does one thing wrong at a door, and leaves at the latest
// when hold has passed. It returns what went on.
func Broken(r *rand.Rand, addr string, hold time.Duration) string {
	kinds := []struct {
		name string
		do   func(net.Conn)
	}{
		{"says nothing", func(c net.Conn) { listen(c) }},
		{"leaves in the head", func(c net.Conn) { io.WriteString(c, request(streamed, len(streamed))[:20+r.IntN(60)]) }},
		{"stays in the head", func(c net.Conn) { io.WriteString(c, request("", 9)[:30]); listen(c) }},
		{"leaves in the body", func(c net.Conn) { io.WriteString(c, request(streamed[:40], len(streamed))) }},
		{"stays in the body", func(c net.Conn) { io.WriteString(c, request(streamed[:40], len(streamed))); listen(c) }},
		{"announces much and sends little", func(c net.Conn) { io.WriteString(c, request("{", 60<<20)); listen(c) }},
		{"dribbles", func(c net.Conn) { dribble(c, request(streamed, len(streamed)), hold) }},
		{"resets in the answer", func(c net.Conn) {
			io.WriteString(c, request(streamed, len(streamed)))
			c.Read(make([]byte, 1+r.IntN(2000)))
			c.(*net.TCPConn).SetLinger(0)
		}},
		{"does not read", func(c net.Conn) {
			c.(*net.TCPConn).SetReadBuffer(1024)
			io.WriteString(c, request(streamed, len(streamed)))
			<-time.After(hold)
		}},
		{"speaks another language", func(c net.Conn) {
			noise := make([]byte, 1+r.IntN(3000))
			for i := range noise {
				noise[i] = byte(r.IntN(256))
			}
			c.Write(noise)
			listen(c)
		}},
		{"asks many times at once", func(c net.Conn) {
			c.Write(bytes.Repeat([]byte("GET /v1/models HTTP/1.1\r\nHost: door\r\n\r\n"), 50))
			c.Read(make([]byte, 100))
		}},
		{"sends chunks that are none", func(c net.Conn) {
			io.WriteString(c, "POST /v1/completions HTTP/1.1\r\nHost: door\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n")
			listen(c)
		}},
		{"ends its side and listens", func(c net.Conn) {
			io.WriteString(c, request(streamed, len(streamed)))
			c.(*net.TCPConn).CloseWrite()
			listen(c)
		}},
	}
	k := kinds[r.IntN(len(kinds))]
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return "finds nobody"
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(hold))
	k.do(c)
	return k.name
}

func listen(c net.Conn) { io.Copy(io.Discard, c) }

// dribble sends a byte at a time.
func dribble(c net.Conn, text string, hold time.Duration) {
	pause := time.NewTicker(hold / 100)
	defer pause.Stop()
	for i := range len(text) {
		if _, err := io.WriteString(c, text[i:i+1]); err != nil {
			return
		}
		<-pause.C
	}
}
