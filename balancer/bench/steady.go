package main

import (
	"fmt"
	"sync"
	"time"
)

// idlers are keep-alive connections to one address that serve requests in turns.
type idlers struct {
	conns chan *client
}

// dialIdlers opens 64 connections.
func dialIdlers(addr string) (*idlers, error) {
	f := &idlers{make(chan *client, 64)}
	for range cap(f.conns) {
		c, err := dial(addr)
		if err != nil {
			f.close()
			return nil, err
		}
		f.conns <- c
	}
	return f, nil
}

// use sends one request over each connection, so that none is any more what a
// connection is at its first.
func (f *idlers) use(req []byte) error {
	for range cap(f.conns) {
		c := <-f.conns
		_, err := c.do(req)
		f.conns <- c
		if err != nil {
			return err
		}
	}
	return nil
}

// steady sends n requests at a fixed rate, each on the connection that was idle
// for longest.
func (f *idlers) steady(rate, n int, req []byte) (*result, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	out := &result{}
	began := time.Now()
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for range n {
		<-tick.C
		c := <-f.conns
		wg.Go(func() {
			t := time.Now()
			_, err := c.do(req)
			took := time.Since(t)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.failed++
			} else {
				out.times = append(out.times, took)
			}
			f.conns <- c
		})
	}
	wg.Wait()
	out.seconds, out.requests = time.Since(began).Seconds(), int64(len(out.times))
	if out.failed > 0 {
		return out, fmt.Errorf("%d of %d requests failed", out.failed, n)
	}
	return out, nil
}

// close ends the connections; none may be in use.
func (f *idlers) close() {
	close(f.conns)
	for c := range f.conns {
		c.c.Close()
	}
}

// steady sends requests at a fixed rate for a while, over connections of its own.
func steady(addr string, rate int, req []byte, span time.Duration) (*result, error) {
	f, err := dialIdlers(addr)
	if err != nil {
		return nil, err
	}
	defer f.close()
	return f.steady(rate, int(span.Seconds()*float64(rate)), req)
}
