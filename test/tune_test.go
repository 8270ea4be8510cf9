package test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tuned has `roundhouse tune` measure a pool whose engine takes some time for a step, as
// the constants say. Time that a crowded machine takes besides is the same for all. Each
// turn starts an engine: twelve starts are what this test takes its seconds for.
func tuned(t *testing.T, present, speed string, args ...string) (out, before, after string) {
	t.Helper()
	dir := t.TempDir()
	config, constants := filepath.Join(dir, "roundhouse.hcl"), filepath.Join(dir, "speed.json")
	before = fmt.Sprintf("pool \"chat\" {\n  workers = 1\n  devices = \"cpu\"\n\n  engine {\n    args = [\"--pace\", \"20ms\", %s] # the present ones\n  }\n}\n", present)
	for path, text := range map[string]string{config: before, constants: speed} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := append([]string{"tune", "-c", config, "chat", "--speed", constants, "--slo", "batch", "--measure", "--best", "1"}, args...)
	cmd := exec.Command(built.Path(t, "roundhouse"), all...)
	var text, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s%s", err, &said, &text)
	}
	now, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	return text.String(), before, string(now)
}

// constants are those of an engine with a base time of a step.
func constants(prompt float64) string {
	return fmt.Sprintf(`{"base_seconds":0.02,"prompt_token_seconds":%g,"running_request_seconds":1e-6,"max_num_batched_tokens":2048,"kv_capacity_tokens":100000,"max_prompt_tokens":8000,"max_num_seqs":256}`, prompt)
}

// An engine that takes one request at a time is found out, the change is shown with its
// reason, and nothing is changed.
func TestTuneFinds(t *testing.T) {
	out, before, after := tuned(t, `"--max-num-seqs", "1"`, constants(1e-6), "--num-prompts", "8", "--request-rate", "40", "--random-input-len", "8", "--random-output-len", "8")
	if after != before {
		t.Errorf("the file was changed:\n%s", after)
	}
	for _, want := range []string{"measured in 3 turns with the present --max-num-seqs 1", `"--max-num-seqs", "1"] # the present ones`, `"--max-num-seqs", "`, "nothing is changed: edit"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+++") && (!strings.Contains(line, `"--pace", "20ms", "--max-num-seqs", "`) || strings.Contains(line, `"1"`) || !strings.Contains(line, "# the present ones")) {
			t.Errorf("the proposed line: %s", line)
		}
	}
}

// What only the constants promise is not proposed: an engine whose prompts cost nothing is
// as good with small steps as with large ones.
func TestTuneShowsNoDifference(t *testing.T) {
	out, before, after := tuned(t, `"--max-num-seqs", "512", "--max-num-batched-tokens", "512"`, constants(1e-6), "--runs", "2", "--num-prompts", "4", "--request-rate", "10", "--random-input-len", "700", "--random-output-len", "2")
	if after != before || !strings.Contains(out, "no difference shown") || strings.Contains(out, "+++") {
		t.Errorf("changed %t:\n%s", after != before, out)
	}
}

// A change that a running supervisor is given with --canary is written, taken, tried on one
// worker, judged by the answers of real traffic, and goes on to the other one; no answer is
// lost.
func TestTuneCanary(t *testing.T) {
	// Batch wants a token each 100 ms: the pace is far from that, whatever else the machine does.
	path, door, admin := writeConfig(t, strings.Replace(judged, `"--pace", "100ms"`, `"--pace", "50ms", "--max-num-seqs", "1"`, 1))
	s := startAt(t, path, door, admin)
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	var answers tally
	answers.keepOf(ctx, t, s, 6, 3)
	speed := filepath.Join(t.TempDir(), "speed.json")
	if err := os.WriteFile(speed, []byte(strings.Replace(constants(1e-6), "0.02", "0.05", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, built.Path(t, "roundhouse"), "tune", "-c", path, "chat", "--speed", speed, "--slo", "batch", "--measure", "--canary", "--best", "1", "--runs", "4",
		"--num-prompts", "20", "--request-rate", "20", "--random-input-len", "8", "--random-output-len", "4")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "written and reloaded") {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), `"--max-num-seqs", "1"]`) || !strings.Contains(string(text), `"--max-num-seqs", "`) {
		t.Fatalf("the file after %s%v\n%s", out, err, text)
	}
	var state, reason string
	poll(t, "the canary has ended", func() bool {
		var id int
		id, state, reason = s.lastRotation()
		return id == 1 && state != "running"
	}, s.out.String)
	if state != "done" {
		t.Fatalf("the rotation is %s: %s", state, reason)
	}
	s.waitReady()
	for _, w := range s.known() {
		if w.Generation != 2 {
			t.Errorf("%s is in generation %d after %s", w.ID, w.Generation, out)
		}
	}
	answers.stop(t)
}
