//go:build amd64 && !linux && !purego

package cpu

// requestTiles says no: how other systems give tiles is not known here.
func requestTiles() bool { return false }
