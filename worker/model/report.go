package model

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"roundhouse/kernels"
)

// Formats are those that weights can be turned into while they are read, in
// the order of their size.
func Formats() []kernels.Format {
	return []kernels.Format{kernels.FormatF32, kernels.FormatBF16, kernels.FormatF16, kernels.FormatFP8, kernels.FormatInt8, kernels.FormatInt4}
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
	fmt.Fprintf(w, "%s: %d layers of %d, vocabulary %d, %d positions\n", c.Architecture, c.Layers, c.Hidden, c.Vocab, c.MaxPositions)
	fmt.Fprintf(w, "memory: %s, of which %s are used; steps of %d tokens, %d sequences; %s KV in blocks of %d\n\n",
		gib(o.Memory), gib(int64(float64(o.Memory)*o.Utilisation)), o.Limits.Tokens, o.Limits.Seqs, o.KVType, o.BlockTokens)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "weights as\tfits\tweights\tactivations\tKV cache\tKV tokens\tlongest context\tat once")
	var faults []error
	for _, f := range Formats() {
		o.Format = f
		p, err := m.Plan(o)
		fits := "yes"
		if err != nil {
			fits = "no"
			faults = append(faults, fmt.Errorf("%v: %w", f, err))
		}
		fmt.Fprintf(t, "%v\t%s\t%s\t%s\t%s\t%d\t%d\t%.2f × %d\n", f, fits, gib(p.Weights), gib(p.Activations), gib(p.KV), p.KVTokens, p.Longest, p.Concurrency, p.MaxModelLen)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, fault := range faults {
		fmt.Fprintf(w, "\n%v\n", fault)
	}
	if len(faults) == len(Formats()) {
		return ErrFitsNowhere
	}
	return nil
}
