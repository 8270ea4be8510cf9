package configs

import (
	"fmt"
	"strings"
	"time"
)

// MaxDuration is the longest time that a configuration may name. It keeps
// sums of durations far from overflow.
const MaxDuration = Duration(10 * 365 * 24 * time.Hour)

// Std returns d as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns d as a configuration would have it: "90s" is "1m30s", and
// "10m" stays "10m" where the standard library says "10m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText returns what String returns.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = v
	return nil
}

// ParseDuration reads a time such as "90s", "10m" or "1h30m". "0s" and "0" are
// none; a negative time, and one beyond MaxDuration, are errors.
func ParseDuration(s string) (Duration, error) {
	v, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf(`%q is not a time; write one such as "90s", "10m" or "1h30m"`, s)
	}
	if v < 0 {
		return 0, fmt.Errorf("%q is negative; a time is 0s or more", s)
	}
	if Duration(v) > MaxDuration {
		return 0, fmt.Errorf("%q is longer than ten years", s)
	}
	return Duration(v), nil
}
