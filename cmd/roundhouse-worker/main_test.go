package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	f := func(args string, code int, out, errors string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		got := run(strings.Fields(args), &stdout, &stderr)
		if got != code || !strings.Contains(stdout.String(), out) || !strings.Contains(stderr.String(), errors) {
			t.Errorf("%q: code %d, %q, %q; want %d, %q, %q", args, got, stdout.String(), stderr.String(), code, out, errors)
		}
	}
	f("", 2, "", "roundhouse-worker serve [MODEL]")
	f("help", 0, "roundhouse-worker serve [MODEL]", "")
	f("version", 0, "roundhouse-worker", "")
	f("dance", 2, "", `there is no command "dance"`)
	f("serve --help", 0, "--max-num-seqs", "")
	f("serve --prot 1", 2, "", "there is no flag --prot")
	f("serve --port 0 --model /nowhere", 1, "", "there is no such folder")
	f("serve --port 0 --device xpu:ffff:ff:1f.7", 1, "", "--device xpu:ffff:ff:1f.7: ") // no library, no driver or no such GPU
	f("bench-kernels --device xpu:ffff:ff:1f.7", 1, "", "--device xpu:ffff:ff:1f.7: ")
	f("bench-kernels --device tpu", 2, "", "want cpu or xpu")
	f("bench-kernels cpu", 2, "", "the device is --device")
	f("evaluate --device tpu", 2, "", "want all, cpu or xpu")
	f("evaluate cpu", 2, "", "the device is --device")
	f("evaluate --device xpu:ffff:ff:1f.7", 1, "", "--device xpu:ffff:ff:1f.7: ")
	f("tune --device cpu", 2, "", "has nothing to tune")
	f("tune --device xpu:ffff:ff:1f.7", 1, "", "--device xpu:ffff:ff:1f.7: ")
}
