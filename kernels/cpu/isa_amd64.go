//go:build !purego

package cpu

import "golang.org/x/sys/cpu"

//go:generate go run ./gen

func cpuid(leaf uint32) (ax, bx, cx, dx uint32)

// pause is a moment between two looks at a shared variable.
func pause()

// isas is the kernels that this machine can run, the best first.
func isas() []*isa {
	all := []*isa{portable()}
	const f16c = 1 << 29
	_, _, features, _ := cpuid(1)
	x := &cpu.X86
	if !x.HasAVX2 || !x.HasFMA || features&f16c == 0 {
		return all
	}
	all = append([]*isa{isaAVX2()}, all...)
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI {
		all = append([]*isa{isaAVX512()}, all...)
		if x.HasAVX512BF16 && sameDots() {
			all = append([]*isa{isaBF16()}, all...)
		}
		if amxAllowed() {
			all = append([]*isa{isaAMX()}, all...)
		}
	}
	return all
}
