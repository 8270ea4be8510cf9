package launch

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"roundhouse/worker/device"
)

// TestSleepFreesMemory holds that a sleeping worker has given weights and KV
// cache back, that its metric says so, and that it answers as before when it
// wakes.
func TestSleepFreesMemory(t *testing.T) {
	o, err := ParseServe([]string{"--dtype", "float32"}, func(name string) string { return map[string]string{"VLLM_SERVER_DEV_MODE": "1"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	hs := serveOpen(t, o, quiet)
	call := func(path string) {
		t.Helper()
		resp, err := http.Post(hs.URL+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	asked := prompts(t)
	awake := tokens(t, hs.URL, asked[:4], true, 1)
	state := func(name string) float64 {
		return metric(t, hs.URL, "vllm:engine_sleep_state", `sleep_state="`+name+`"`)
	}
	for level, name := range []string{1: "weights_offloaded", 2: "discard_all"} {
		if level == 0 {
			continue
		}
		before := resident(t)
		call(fmt.Sprintf("/sleep?level=%d", level))
		after := resident(t)
		if freed := before - after; freed < 20<<20 {
			t.Errorf("level %d gives %d of %d MiB back", level, freed>>20, before>>20)
		}
		if state("awake") != 0 || state(name) != 1 || metric(t, hs.URL, "vllm:kv_cache_usage_perc") != 0 {
			t.Errorf("level %d: the metric does not say so", level)
		}
		call("/wake_up?tags=weights&tags=kv_cache")
		if state("awake") != 1 || state(name) != 0 {
			t.Errorf("after level %d: the metric does not say that it is awake", level)
		}
		if got := tokens(t, hs.URL, asked[:4], true, 1); fmt.Sprint(got) != fmt.Sprint(awake) {
			t.Errorf("after level %d: got %v; want %v", level, got, awake)
		}
	}
	resp, err := http.Post(hs.URL+"/wake_up?tags=weights", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a part of a worker is woken: %d", resp.StatusCode)
	}
}

// TestNoRoomToWake holds that a worker whose memory was taken by others while it slept
// says so and sleeps on, and answers once the memory is back.
func TestNoRoomToWake(t *testing.T) {
	o, err := ParseServe(nil, func(name string) string { return map[string]string{"VLLM_SERVER_DEV_MODE": "1"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	w, hs := workerOpen(t, o, quiet)
	call := func(path string) (int, string) {
		t.Helper()
		resp, err := http.Post(hs.URL+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	asked := prompts(t)[:2]
	awake := tokens(t, hs.URL, asked, true, 1)
	if code, text := call("/sleep?level=1"); code != 200 {
		t.Fatal(code, text)
	}
	w.memory.room = func() device.Room { return device.Room{Bytes: 64 << 20, Limit: "memory.max of /here"} }
	if code, text := call("/wake_up"); code != 500 || !strings.Contains(text, "memory.max of /here leaves 0.06 GiB") || !strings.Contains(text, "--kv-cache-memory-bytes") {
		t.Errorf("%d %s", code, text)
	}
	if metric(t, hs.URL, "vllm:engine_sleep_state", `sleep_state="weights_offloaded"`) != 1 {
		t.Error("it does not sleep on")
	}
	w.memory.room = device.MemoryHere
	if code, text := call("/wake_up"); code != 200 {
		t.Fatal(code, text)
	}
	if got := tokens(t, hs.URL, asked, true, 1); fmt.Sprint(got) != fmt.Sprint(awake) {
		t.Errorf("got %v; want %v", got, awake)
	}
}

// resident is the process's own memory, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatal("/proc/self/status has no RssAnon")
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
