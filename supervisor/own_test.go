package supervisor

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"roundhouse/configs"
)

// A change of what one worker has of its own rolls out to that worker and to no other:
// the other goes on as the process that it was.
func TestOwnSettingsTurnOne(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_MODEL": "fake"})
	b.run()
	before := b.workers()
	b.cfg.Pools[0].Workers[1] = configs.Worker{Name: "2", Environment: map[string]string{"OWN": "mine"}, Args: []string{"--quantization", "own"}}
	b.write()
	status, text := b.post("/api/reload", "")
	if status != 200 || !strings.Contains(text, "pools.chat.workers.2.environment") || !strings.Contains(text, "pools.chat.workers.2.args") || strings.Contains(text, "mine") {
		t.Fatalf("the reload: %d %s", status, text)
	}
	b.until("the second worker has turned", func() bool {
		w := b.workers()
		return len(w) == 2 && w[1].State == "ready" && w[1].Generation == before[1].Generation+1
	})
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", b.workers()[1].Place.PID))
	if err != nil || !strings.Contains(string(environ), "OWN=mine\x00") || !strings.Contains(string(environ), "FAKE_MODEL=fake\x00") {
		t.Errorf("its environment: %q %v", environ, err)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", b.workers()[1].Place.PID))
	if err != nil || !strings.HasSuffix(string(line), "--quantization\x00own\x00") {
		t.Errorf("its command line: %q %v", line, err)
	}
	b.until("its roll-out has ended", func() bool {
		state, _ := b.rotation()
		return state == "done"
	})
	if w := b.workers(); w[0].Generation != before[0].Generation || w[0].Place.PID != before[0].Place.PID {
		t.Errorf("the other worker has turned too: %+v; it was %+v", w[0], before[0])
	}
}
