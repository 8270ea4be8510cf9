package docker

import (
	"fmt"
	"strconv"
	"testing"

	"roundhouse/test/ports"
)

// TestMigrationUnderLoad takes two containers over that run already, as
// llm-scaler's do, serves them as they are, and replaces each in its turn,
// twice, while clients go on asking: nothing is lost, nothing refused.
func TestMigrationUnderLoad(t *testing.T) {
	l := engineFor(t)
	at := []int{ports.Free(t), ports.Free(t)}
	l.stranger(t, "rh_vllm_1", true, "--port", strconv.Itoa(at[0]))
	l.stranger(t, "rh_vllm_2", true, "--port", strconv.Itoa(at[1]))
	h := houseFor(t, "vllm", fmt.Sprintf(`
pool "vllm" {
  driver       = "docker"
  devices      = "cpu"
  image        = %q
  pull_policy  = "never"
  network_mode = %q
  engine {
    served_model_name = ["fake"]
  }
  worker "rh_vllm_1" {
    port     = %d
    takeover = "rh_vllm_1"
  }
  worker "rh_vllm_2" {
    port     = %d
    takeover = "rh_vllm_2"
  }
}
`, testImage, hostNetwork(), at[0], at[1]))
	h.until("1 ready 1 ready")
	stop := h.load()
	for turn := 2; turn <= 3; turn++ {
		if out, err := h.run("rotate", "vllm"); err != nil {
			t.Fatal(err, out)
		}
		h.until(fmt.Sprintf("%d ready %d ready", turn, turn))
	}
	t.Logf("%d answers over 4 turns, the first two of them from containers of another's: 0 lost, 0 refused", stop())
}
