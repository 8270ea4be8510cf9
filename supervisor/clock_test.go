package supervisor

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The time by which the supervisor judges who is late stands still while the machine
// sleeps: what a clock tells is the same in a namespace whose machine has slept a day.
func TestSleepIsNotCounted(t *testing.T) {
	const given = "ROUNDHOUSE_TEST_CLOCK"
	if text := os.Getenv(given); text != "" {
		var c clock
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(c.resume().Now()); err != nil {
			t.Fatal(err)
		}
		os.Exit(0)
	}
	c := clock{}.resume()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asleep := []string{"--time", "--boottime", "86400", os.Args[0], "-test.run", "^TestSleepIsNotCounted$"}
	if os.Geteuid() != 0 {
		asleep = append([]string{"--map-root-user"}, asleep...)
	}
	cmd := exec.Command("unshare", asleep...)
	cmd.Env, cmd.Stderr = append(os.Environ(), given+"="+string(text)), os.Stderr
	before := c.Now()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("unshare (of util-linux 2.36 or later): %v", err)
	}
	var told time.Time
	if err := json.Unmarshal(out, &told); err != nil {
		t.Fatal(err)
	}
	if told.Before(before) || told.After(c.Now()) {
		t.Errorf("behind a day of sleep it is %v; before it was %v", told, before)
	}
}
