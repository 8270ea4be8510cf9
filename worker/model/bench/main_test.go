package main

import "testing"

// TestParse: the table is made of what the benchmark prints.
func TestParse(t *testing.T) {
	rows, err := parse("goos: linux\nBenchmarkModels/LlamaForCausalLM/load-2 \t 3 \t 50000000 ns/op\t 100.00 MB/s\n" +
		"BenchmarkModels/LlamaForCausalLM/prompt-2 \t 3 \t 1000 ns/op\t 5120.5 tokens/s\nBenchmarkModels/LlamaForCausalLM/token \t 3 \t 1000 ns/op\t 99.0 tokens/s\nPASS\n")
	if want := (family{"LlamaForCausalLM", 0.05, 5120.5, 99}); err != nil || len(rows) != 1 || rows[0] != want {
		t.Fatalf("%+v, %v; want %+v", rows, err, want)
	}
	if _, err := parse("PASS\n"); err == nil {
		t.Fatal("no rows, and no error")
	}
}
