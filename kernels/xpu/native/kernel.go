package native

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
)

// Kernel is one entry of a binary.
type Kernel struct {
	Name    string
	DPAS    int  // instructions of the matrix unit
	Private bool // it keeps private memory, or scratch for spilled registers
	Bytes   int  // of code
}

var kernelName = regexp.MustCompile(`(?m)^ *- name: +(\S+)`)

// readKernels reads a zebin: an ELF file whose .ze_info describes the kernels and whose
// .text sections hold them.
func readKernels(path string) ([]Kernel, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info := f.Section(".ze_info")
	if info == nil {
		return nil, fmt.Errorf("%s has no .ze_info: it is of the old form", path)
	}
	text, err := info.Data()
	if err != nil {
		return nil, err
	}
	private := privateKernels(string(text))
	var out []Kernel
	for _, s := range f.Sections {
		name, ok := strings.CutPrefix(s.Name, ".text.")
		if !ok || strings.HasPrefix(name, "Intel_") {
			continue
		}
		code, err := s.Data()
		if err != nil {
			return nil, err
		}
		out = append(out, Kernel{Name: name, DPAS: countDPAS(code), Private: private[name], Bytes: len(code)})
	}
	return out, nil
}

// privateKernels names the kernels whose description has memory of each thread.
func privateKernels(info string) map[string]bool {
	out := map[string]bool{}
	at := kernelName.FindAllStringSubmatchIndex(info, -1)
	for i, m := range at {
		end := len(info)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if strings.Contains(info[m[1]:end], "per_thread_memory_buffers") {
			out[info[m[2]:m[3]]] = true
		}
	}
	return out
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
		size := 16
		if word>>29&1 == 1 {
			size = 8
		}
		if len(code) < size {
			break
		}
		code = code[size:]
	}
	return n
}
