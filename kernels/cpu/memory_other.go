//go:build unix && !linux

package cpu

import "os"

// reserve does nothing: only Linux can set disk blocks aside.
func reserve(*os.File, int64, int64) error { return nil }

// huge does nothing: only Linux takes advice on the size of pages.
func huge([]byte) {}
