//go:build pocl

package xpu

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// targets are the GPUs that ocloc compiles for, with the tuning that stands for them.
// The 16-lane build stands for Xe2 as well.
var targets = []struct {
	device string
	tuning Tuning
}{
	{"acm-g10", Tuning{Split: 4, Rows: 8, Lanes: 8, Tiles: 2, DPAS: true}},
	{"pvc", Tuning{Split: 4, Rows: 8, Lanes: 16, Tiles: 4, DPAS: true}},
}

// Every kernel compiles to native code, none keeps registers in memory, and the
// matrix kernels really use the matrix unit: its wrong form compiles without a word.
func TestNativeCode(t *testing.T) {
	ocloc, err := exec.LookPath("ocloc")
	if err != nil {
		t.Skip("ocloc is not there; the package intel-opencl-icd has it")
	}
	for _, target := range targets {
		t.Run(target.device, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "kernels.cl")
			if err := os.WriteFile(file, []byte(source(target.tuning)), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(ocloc, "compile", "-file", file, "-device", target.device, "-out_dir", dir,
				"-options", target.tuning.options(), "-internal_options", "-cl-intel-allow-zebin")
			out, err := cmd.CombinedOutput()
			if err != nil || bytes.Contains(out, []byte("spill")) {
				t.Fatalf("%v\n%s", err, out)
			}
			binaries, err := filepath.Glob(filepath.Join(dir, "*.bin"))
			if err != nil || len(binaries) != 1 {
				t.Fatalf("ocloc left %v, %v", binaries, err)
			}
			checkNative(t, binaries[0], target.tuning)
		})
	}
}

func checkNative(t *testing.T, path string, tuning Tuning) {
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	counted := 0
	for _, s := range f.Sections {
		data, err := s.Data()
		if err != nil {
			continue
		}
		if s.Name == ".ze_info" && bytes.Contains(data, []byte("per_thread_memory_buffers")) {
			t.Error("a kernel keeps private memory outside its registers")
		}
		kernel, ok := strings.CutPrefix(s.Name, ".text.linear_")
		if !ok {
			continue
		}
		matrix := !strings.HasPrefix(kernel, "f32") && !strings.HasPrefix(kernel, "f16")
		n := countDPAS(data)
		if matrix != (n > 0) {
			t.Errorf("linear_%s has %d DPAS instructions", kernel, n)
		}
		if matrix {
			counted++
		}
	}
	if want := 10; counted != want {
		t.Errorf("%d matrix kernels; want %d", counted, want)
	}
}

// countDPAS walks native instructions: 16 bytes each, or 8 where bit 29 says that it
// is compacted. The lowest seven bits are the opcode.
func countDPAS(code []byte) int {
	const dpas = 0x59
	n := 0
	for len(code) >= 8 {
		word := binary.LittleEndian.Uint32(code)
		if word&0x7f == dpas {
			n++
		}
		if word>>29&1 == 1 {
			code = code[8:]
		} else if len(code) >= 16 {
			code = code[16:]
		} else {
			break
		}
	}
	return n
}
