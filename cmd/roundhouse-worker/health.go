package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// health asks a worker of this machine whether it can answer: what a
// container's health check runs, where there is no other program to ask with.
func health(args []string, stderr io.Writer) int {
	url := "http://127.0.0.1:8000/health"
	if len(args) == 1 {
		url = args[0]
	} else if len(args) > 1 {
		fmt.Fprintln(stderr, "roundhouse-worker: health takes one URL at most")
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return told(stderr, err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return told(stderr, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return told(stderr, fmt.Errorf("%s answers %s", url, res.Status))
	}
	return 0
}
