package api

import (
	"strconv"
	"time"
)

// MostWaited bounds the time that a worker believes a request to have waited
// before it came: as long as a door waits for a first byte, by default.
const MostWaited = 10 * time.Minute

// Waited reads the value of HeaderWaited: nothing where it is no number, and
// never more than MostWaited.
func Waited(header string) time.Duration {
	ms, err := strconv.ParseUint(header, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(min(ms, uint64(MostWaited/time.Millisecond))) * time.Millisecond
}
