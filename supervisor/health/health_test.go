package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"roundhouse/configs"
	"roundhouse/measure/diagnose"
)

// A watch notes a finding once when it begins and once when it is over, answers with
// it, and looks on when there were no metrics for a while.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // of what follows
		n, ill, away := 0, true, false
		var noted []string
		set := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
		w := New(Source{
			Log: slog.New(slog.DiscardHandler),
			Page: func(context.Context) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				if away {
					return "", errors.New("no door answers")
				}
				n++
				waiting := 0
				if ill {
					waiting = n * 5
				}
				return fmt.Sprintf("roundhouse_worker_state{pool=\"p\",worker=\"1\",state=\"ready\"} 1\nroundhouse_queue_requests{pool=\"p\"} %d\n", waiting), nil
			},
			Facts: func(context.Context) diagnose.Facts { return diagnose.Facts{} },
			Note: func(_ context.Context, pool, worker, kind, text string) {
				set(func() { noted = append(noted, kind+" "+pool+worker+" "+text[:min(13, len(text))]) })
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		time.Sleep(4 * time.Minute)
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, nil)
		var report diagnose.Report
		if err := json.Unmarshal(rec.Body.Bytes(), &report); err != nil || len(report.Findings) != 1 || report.Findings[0].Rule != "over-capacity" || report.Samples < 40 {
			t.Errorf("%v: %s", err, rec.Body)
		}
		set(func() { away = true })
		time.Sleep(time.Minute)
		set(func() { away, ill = false, false })
		time.Sleep(6 * time.Minute)
		cancel()
		synctest.Wait()
		if len(noted) != 2 || noted[0] != "finding p over-capacity" || noted[1] != "finding_over p over-capacity" {
			t.Errorf("noted %q", noted)
		}
	})
}

// Facts tell of arguments, keys with limits and capacities set by hand.
func TestFacts(t *testing.T) {
	c := &configs.Config{
		Pools: []configs.Pool{{Name: "p", Driver: "static", Policy: "fastest", Engine: configs.Engine{Args: []string{"--a"}, ServedModelName: []string{"m"}}, Workers: []configs.Worker{{Name: "1", KVTokens: 5}, {Name: "2"}}}},
	}
	c.Routes = []configs.Route{{Name: "r", Sticky: "prefix", Targets: []configs.Target{{Model: "m"}}}}
	c.Door.Keys = []configs.Key{{Name: "k", MaxConcurrent: 3}, {Name: "free"}}
	f := Facts(c)
	if p := f.Pools[0]; !p.Static || p.Sticky != "prefix" || p.Workers != 2 || len(p.ByHand) != 1 || p.ByHand[0] != "1" || len(p.Args) != 1 {
		t.Errorf("%+v", p)
	}
	if len(f.Keys) != 1 || f.Keys[0] != (diagnose.Key{Name: "k", Concurrent: 3}) {
		t.Errorf("%+v", f.Keys)
	}
}

// What is unlike its peers comes into the report, and as an event.
func TestAnomaly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // of what follows
		slow, count := 1.0, 0
		var sums [5]float64
		var noted []string
		set := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
		w := New(Source{
			Log: slog.New(slog.DiscardHandler),
			Page: func(context.Context) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				count += 10
				page := ""
				for i := range 5 {
					seconds := 0.2 + 0.01*float64((count/10+i)%3) // no minute is like another
					if i == 2 {
						seconds *= slow
					}
					sums[i] += 10 * seconds
					page += fmt.Sprintf("roundhouse_worker_state{pool=\"p\",worker=\"%d\",state=\"ready\"} 1\nvllm:num_requests_running{worker=\"p/%d\"} 1\nvllm:time_to_first_token_seconds_sum{worker=\"p/%d\"} %g\nvllm:time_to_first_token_seconds_count{worker=\"p/%d\"} %d\n", i, i, i, sums[i], i, count)
				}
				return page, nil
			},
			Facts: func(context.Context) diagnose.Facts { return diagnose.Facts{} },
			Note: func(_ context.Context, _, worker, kind, text string) {
				set(func() { noted = append(noted, kind+" "+worker+" "+text) })
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		time.Sleep(3 * time.Hour)
		set(func() {
			if len(noted) > 0 {
				t.Errorf("of a healthy fleet: %q", noted)
			}
			slow = 1.6
		})
		time.Sleep(20 * time.Minute)
		cancel()
		synctest.Wait()
		if len(noted) != 1 || !strings.Contains(noted[0], "finding p/2 anomaly: time to the first token") {
			t.Errorf("noted %q", noted)
		}
	})
}
