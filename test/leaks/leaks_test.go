package leaks

import (
	"strings"
	"testing"
	"time"
)

// A goroutine that ends late is waited for; one that stays is told.
func TestFind(t *testing.T) {
	late := make(chan struct{})
	go func() { <-late }()
	if err := find(time.Millisecond); err == nil || !strings.Contains(err.Error(), "TestFind") {
		t.Errorf("what stays: %v; want its stack", err)
	}
	time.AfterFunc(time.Second, func() { close(late) }) // longer than goleak waits
	if err := find(time.Minute); err != nil {
		t.Errorf("what ends late: %v", err)
	}
}
