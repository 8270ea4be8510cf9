//go:build unix && !linux

package cpu

// huge does nothing: only Linux takes advice on the size of pages.
func huge([]byte) {}

// populate does nothing: only Linux maps the pages of a file at once.
func populate([]byte) {}
