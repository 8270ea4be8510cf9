//go:build !purego

package cpu

import "golang.org/x/sys/cpu"

// isaAMX is AVX-512 with the matrix unit for linears of at least 8 rows.
func isaAMX() *isa {
	l := isaAVX512()
	l.name = "amx"
	for kind, shapes := range matrixAMX() {
		l.matrix[kind] = append(shapes, l.matrix[kind]...)
	}
	l.halves = halvesBy(halvesAMX)
	l.pairsFP8 = pairsOfFP8
	return l
}

// amxAllowed reports whether the machine has the instructions and whether the
// kernel lets this process use them. It asks for that permission, which the
// threads that are started later inherit and which the kernel gives only where
// every thread has room on its signal stack for the tiles.
func amxAllowed() bool {
	x := &cpu.X86
	return x.HasAMXTile && x.HasAMXInt8 && x.HasAMXBF16 && requestTiles()
}
