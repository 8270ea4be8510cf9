package model

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"roundhouse/kernels"
)

// Formats are those that weights can be turned into while they are read, in
// the order of their size.
func Formats() []kernels.Format {
	return []kernels.Format{kernels.FormatF32, kernels.FormatBF16, kernels.FormatF16, kernels.FormatFP8, kernels.FormatInt8, kernels.FormatInt4}
}

// formats are those that this checkpoint can be kept in.
func (m *Model) formats() []kernels.Format {
	var list []kernels.Format
	for _, f := range Formats() {
		// Of what is quantised already, both sixteen-bit formats keep the codes.
		if m.settings.quant.fits(f) == nil && (m.settings.quant == nil || f != kernels.FormatF16) {
			list = append(list, f)
		}
	}
	return list
}

// formatName says what a format makes of this checkpoint.
func (m *Model) formatName(f kernels.Format) string {
	sixteen := f == kernels.FormatBF16 || f == kernels.FormatF16
	switch {
	case sixteen && m.settings.quant != nil:
		return m.settings.quant.method + ", as it is"
	case sixteen && m.hasBlocks():
		return f.String() + ", blocks int8"
	}
	return f.String()
}

// hasBlocks reports whether a GGUF file holds blocks.
func (m *Model) hasBlocks() bool {
	return slices.ContainsFunc(m.set.Names(), func(n string) bool { return isBlocks(m.set.Lookup(n).Type) })
}

// ErrFitsNowhere is returned by Report when no format fits.
var ErrFitsNowhere = errors.New("the model fits in no format")

// Report writes what Plan says for every format: whether the model fits, and
// how much it can then serve.
func (m *Model) Report(w io.Writer, o PlanOptions) error {
	if o.Utilisation == 0 {
		o.Utilisation = defaultUtilisation
	}
	c := m.config
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d layers of %d, vocabulary %d, %d positions\n", c.Architecture, c.Layers, c.Hidden, c.Vocab, c.MaxPositions)
	fmt.Fprintf(&b, "memory: %s, of which %s are used; steps of %d tokens, %d sequences; %s KV in blocks of %d\n\n",
		gib(o.Memory), gib(int64(float64(o.Memory)*o.Utilisation)), o.Limits.Tokens, o.Limits.Seqs, o.KVType, o.BlockTokens)
	rows := [][]string{{"weights as", "fits", "weights", "activations", "KV cache", "KV tokens", "longest context", "at once"}}
	var faults []string
	for _, f := range m.formats() {
		o.Format = f
		p, err := m.Plan(o)
		fits := "yes"
		if err != nil {
			fits = "no"
			faults = append(faults, fmt.Sprintf("\n%s: %v\n", m.formatName(f), err))
		}
		tokens, atOnce := strconv.Itoa(p.KVTokens), fmt.Sprintf("%.2f × %d", p.Concurrency, p.MaxModelLen)
		if c.Kind != Generate { // nothing is kept from one step to the next
			tokens, atOnce = "-", fmt.Sprintf("%d tokens", p.Limits.Tokens)
		}
		rows = append(rows, []string{m.formatName(f), fits, gib(p.Weights), gib(p.Activations), gib(p.KV), tokens, strconv.Itoa(p.Longest), atOnce})
	}
	b.WriteString(columns(rows))
	b.WriteString(strings.Join(faults, ""))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if len(faults) == len(m.formats()) {
		return ErrFitsNowhere
	}
	return nil
}

// columns sets rows under each other, two spaces between columns.
func columns(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
