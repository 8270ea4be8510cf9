package configs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// unit is one suffix of a size.
type unit struct {
	name  string
	bytes int64
}

// units lists the suffixes of a size, the longest first, so that
// "MiB" is not read as "B".
var units = []unit{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1},
}

// Bytes returns s as a number of bytes.
func (s Size) Bytes() int64 { return int64(s) }

// String returns s in the greatest binary unit that divides it: "32MiB".
func (s Size) String() string {
	for _, u := range []unit{units[3], units[2], units[1], units[0]} {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText returns what String returns.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSize reads.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := ParseSize(string(text))
	if err != nil {
		return err
	}
	*s = v
	return nil
}

// ParseSize reads a number of bytes with its unit: "64KiB", "1.5GiB", "2GB".
func ParseSize(text string) (Size, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n >= 0 {
			if n > math.MaxInt64/u.bytes {
				return 0, fmt.Errorf("%q is more than 64 bits can count", text)
			}
			return Size(n * u.bytes), nil
		}
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil || math.IsNaN(f) || f < 0 || strings.ContainsAny(digits, "eExXpP+_") {
			break
		}
		if f*float64(u.bytes) >= math.MaxInt64 {
			return 0, fmt.Errorf("%q is more than 64 bits can count", text)
		}
		return Size(math.Round(f * float64(u.bytes))), nil
	}
	return 0, fmt.Errorf(`%q is not a size; write one such as "64KiB", "32MiB" or "4GiB"`, text)
}
