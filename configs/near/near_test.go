package near

import (
	"slices"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	known := []string{"drain_timeout", "ready_timeout", "stop_grace", "min_ready"}
	f := func(name, want string) {
		t.Helper()
		if got := Name(name, known); got != want {
			t.Errorf("%.20q: got %q; want %q", name, got, want)
		}
	}
	f("drain_timeot", "drain_timeout")
	f("Ready_Timeout", "ready_timeout")
	f("minready", "min_ready")
	f("port", "")
	f("", "")
	f(strings.Repeat("x", 1<<20), "")
}

func TestList(t *testing.T) {
	known := []string{"LlamaForCausalLM", "Qwen3ForCausalLM", "Qwen2ForCausalLM", "BertModel"}
	if got := List("Qwen4ForCausalLM", known, 2); !slices.Equal(got, []string{"Qwen3ForCausalLM", "Qwen2ForCausalLM"}) {
		t.Errorf("got %v", got)
	}
	if got := List("x", known, 9); len(got) != 4 || known[0] != "LlamaForCausalLM" {
		t.Errorf("got %v, known %v", got, known)
	}
}

func TestWords(t *testing.T) {
	known := []string{"max-model-len", "max-num-seqs", "served-model-name"}
	f := func(name, want string) {
		t.Helper()
		if got := Words(name, known); got != want {
			t.Errorf("%q: got %q; want %q", name, got, want)
		}
	}
	f("model-len", "max-model-len")
	f("num-sequences-max", "max-num-seqs")
	f("served-name", "served-model-name")
	f("zz-y", "")
}
