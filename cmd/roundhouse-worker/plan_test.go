package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestPlanAndModels(t *testing.T) {
	f := func(args string, code int, want string) {
		t.Helper()
		var out, errs bytes.Buffer
		got := run(strings.Fields(args), &out, &errs)
		if text := out.String() + errs.String(); got != code || !strings.Contains(text, want) {
			t.Errorf("%s: exit %d; want %d and %q:\n%s", args, got, code, want, text)
		}
	}
	f("plan --memory 1GiB", 0, "Qwen3ForCausalLM: 5 layers of 256")
	f("plan --memory 1GiB", 0, "sym_int4    yes")
	f("plan --memory 1GiB --max-model-len 9000", 1, "max_model_len is 9000; want 1 to 8192")
	f("plan --memory 1MiB", 1, "the model fits in no format")
	f("plan", 2, "--memory: it is missing")
	f("plan --memory lots", 2, `"lots" is no number of bytes`)
	f("plan --memory -1GiB", 2, "is no number of bytes")
	f("plan --memory 1GiB --kv-cache-dtype int3", 2, "--kv-cache-dtype")
	f("plan --memory 1GiB --gpu-memory-utilization 7", 2, "--gpu-memory-utilization is 7")
	f("plan --memory 1GiB here", 2, `"here" is no flag`)
	f("plan --memory 1GiB --model /nowhere", 1, "cannot read config.json")
	f("models", 0, "Qwen3ForCausalLM")
	f("models now", 2, "takes no arguments")
}
