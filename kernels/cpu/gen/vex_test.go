package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	encodedByte = regexp.MustCompile(`BYTE \$0x([0-9a-f]{2});`)
	spaces      = regexp.MustCompile(`\s+`)
)

// What is written as bytes is what the comment beside it says, as binutils reads
// it.
func TestEncodedBytes(t *testing.T) {
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		t.Fatal("objdump is missing (package binutils)")
	}
	var code []byte
	var want []string
	for _, line := range strings.Split(amx()+dot(), "\n") {
		_, text, ok := strings.Cut(line, "// ")
		bytes := encodedByte.FindAllStringSubmatch(line, -1)
		if !ok || len(bytes) == 0 {
			continue
		}
		for _, b := range bytes {
			v, _ := strconv.ParseUint(b[1], 16, 8)
			code = append(code, byte(v))
		}
		want = append(want, text)
	}
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(objdump, "-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn", file).Output()
	if err != nil {
		t.Fatalf("objdump: %v", err)
	}
	var got []string
	for _, line := range strings.Split(string(out), "\n") {
		if address, text, ok := strings.Cut(line, ":\t"); ok && strings.TrimSpace(address) != "" {
			got = append(got, spaces.ReplaceAllString(strings.TrimSpace(text), " "))
		}
	}
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%d instructions in the bytes, %d in the comments", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("instruction %d is %q; its comment says %q", i, got[i], want[i])
		}
	}
}
