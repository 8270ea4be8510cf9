//go:build !purego

package cpu

import "golang.org/x/sys/unix"

// requestTiles asks the kernel for the right to keep data in tiles.
func requestTiles() bool {
	const requestComponent, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestComponent, tileData, 0)
	return errno == 0
}
