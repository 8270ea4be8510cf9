package device

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCPU bounds what a list may name; the kernel's own bound is 8192.
const maxCPU = 8192

// ParseList reads the kernel's list format, "0-3,8,10-11", into sorted numbers.
// The empty string is the empty list.
func ParseList(text string) ([]int, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	var out []int
	for _, part := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if errA != nil || errB != nil || a < 0 || b < a || b >= maxCPU {
			return nil, fmt.Errorf("list %q: %q is not a number or a range; write e.g. \"0-3,8\"", text, part)
		}
		for n := a; n <= b; n++ {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// parseMask reads the kernel's mask format, "000000ff,ffffffff": words of 32 bits,
// the highest CPUs first. Old kernels tell some sets as masks alone.
func parseMask(text string) ([]int, error) {
	words := strings.Split(strings.TrimSpace(text), ",")
	if len(words) > maxCPU/32 {
		return nil, fmt.Errorf("mask %.40q…: it has %d words; %d CPUs are the most that can be", text, len(words), maxCPU)
	}
	var out []int
	for i := len(words) - 1; i >= 0; i-- {
		word, err := strconv.ParseUint(words[i], 16, 32)
		if err != nil {
			return nil, fmt.Errorf("mask %.40q: %q is not a word of 32 bits", text, words[i])
		}
		for bit := range 32 {
			if word>>bit&1 == 1 {
				out = append(out, (len(words)-1-i)*32+bit)
			}
		}
	}
	return out, nil
}

// readSet reads a set of CPUs from the file that has its mask, or, where that is not
// there, from the one that lists it; nil where neither can be read.
func readSet(mask, list string) []int {
	if text := read(mask); text != "" {
		if set, err := parseMask(text); err == nil {
			return set
		}
	}
	set, err := ParseList(read(list))
	if err != nil {
		return nil
	}
	return set
}

// FormatList writes numbers in the kernel's list format.
func FormatList(numbers []int) string {
	sorted := slices.Clone(numbers)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	var b strings.Builder
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(sorted[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(sorted[j]))
		}
		i = j + 1
	}
	return b.String()
}
