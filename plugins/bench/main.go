// Bench compares a call of a policy plugin with a bare gRPC echo of the same
// message over the same kind of socket, in turns, and prints the ratios.
//
//	go run ./plugins/bench [-seconds 3] [-rounds 5]
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"roundhouse/plugins"
	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
)

// request is what a door with eight candidates would send.
func request() *pb.OrderRequest {
	req := &pb.OrderRequest{Request: &pb.Request{Id: "a0f3c2", Pool: "chat", Model: "model", PromptTokens: 900}}
	for i := range 8 {
		req.Candidates = append(req.Candidates, &pb.Candidate{Worker: fmt.Sprintf("chat/%d", i), CapacityTokens: 114432, ChargedTokens: int64(i * 900)})
	}
	return req
}

// load is one way of asking.
type load struct {
	name    string
	workers int
	rate    int // a second; 0: as fast as answers come
}

var loads = []load{{"1 at a time", 1, 0}, {"64 at a time", 64, 0}, {"1 000/s", 64, 1000}}

// measure asks for the given time and returns the median and 99th percentile.
func measure(l load, d time.Duration, call func() error) (p50, p99 time.Duration, err error) {
	var mu sync.Mutex
	var all []time.Duration
	var first error
	begin := make(chan time.Time, l.workers)
	var wg sync.WaitGroup
	for range l.workers {
		wg.Go(func() {
			for due := range begin {
				err := call()
				took := time.Since(due)
				mu.Lock()
				all = append(all, took)
				if err != nil && first == nil {
					first = err
				}
				mu.Unlock()
			}
		})
	}
	feed(l, d, begin)
	wg.Wait()
	if first != nil || len(all) == 0 {
		return 0, 0, first
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100], nil
}

// feed hands out due times: at the load's rate, or whenever someone is free.
func feed(l load, d time.Duration, begin chan<- time.Time) {
	defer close(begin)
	end := time.Now().Add(d)
	if l.rate == 0 {
		for time.Now().Before(end) {
			begin <- time.Now()
		}
		return
	}
	step := time.Second / time.Duration(l.rate)
	for due := time.Now(); due.Before(end); due = due.Add(step) {
		time.Sleep(time.Until(due))
		begin <- due
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "echo" {
		serveEcho(os.Args[2])
		return
	}
	seconds := flag.Float64("seconds", 2, "of each measurement")
	rounds := flag.Int("rounds", 5, "turns; the median ratio is printed")
	flag.Parse()
	if err := compare(time.Duration(*seconds*float64(time.Second)), *rounds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func compare(d time.Duration, rounds int) error {
	dir, err := os.MkdirTemp("", "roundhouse-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := startPlugin(dir)
	if err != nil {
		return err
	}
	defer p.Close()
	echo, stop, err := startEcho(dir)
	if err != nil {
		return err
	}
	defer stop()

	req := request()
	ours := func() error {
		return p.Call(context.Background(), func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := pb.NewPolicyClient(conn).Order(ctx, req)
			return err
		})
	}
	bare := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := echo.Order(ctx, req)
		return err
	}
	fmt.Printf("%-14s %12s %12s %8s %12s %12s %8s\n", "load", "bare p50", "plugin p50", "ratio", "bare p99", "plugin p99", "ratio")
	for _, l := range loads {
		if err := row(l, d, rounds, bare, ours); err != nil {
			return err
		}
	}
	return nil
}

// row measures one load in turns and prints medians over the rounds.
func row(l load, d time.Duration, rounds int, bare, ours func() error) error {
	var figures [4][]time.Duration
	var ratios [2][]float64
	for range rounds {
		b50, b99, err := measure(l, d, bare)
		if err != nil {
			return err
		}
		o50, o99, err := measure(l, d, ours)
		if err != nil {
			return err
		}
		for i, v := range []time.Duration{b50, o50, b99, o99} {
			figures[i] = append(figures[i], v)
		}
		ratios[0] = append(ratios[0], float64(o50)/float64(b50))
		ratios[1] = append(ratios[1], float64(o99)/float64(b99))
	}
	us := func(v []time.Duration) string {
		slices.Sort(v)
		return fmt.Sprintf("%d µs", v[len(v)/2].Microseconds())
	}
	ratio := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	fmt.Printf("%-14s %12s %12s %8.2f %12s %12s %8.2f\n", l.name,
		us(figures[0]), us(figures[1]), ratio(ratios[0]), us(figures[2]), us(figures[3]), ratio(ratios[1]))
	return nil
}

// startPlugin builds and starts the leastlatency example.
func startPlugin(dir string) (*plugins.Plugin, error) {
	path := filepath.Join(dir, "leastlatency")
	if out, err := exec.Command("go", "build", "-o", path, "roundhouse/plugins/examples/leastlatency").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	p := plugins.Start(plugins.Spec{Name: "leastlatency", Kind: sdk.KindPolicy, Path: path, SHA256: hex.EncodeToString(sum[:])},
		plugins.Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), TempDir: dir})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return p, p.Ready(ctx)
}
