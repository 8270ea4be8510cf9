package launch

import (
	"fmt"
	"slices"

	"roundhouse/kernels"
	"roundhouse/worker/model"
)

// noGuesses refuses speculation where a wrong guess could not be taken back: it
// would stay in the layers' recurrent state.
func noGuesses(o *Options, name string, m *model.Model) error {
	if o.Speculative.Tokens == 0 || !slices.ContainsFunc(m.KVGroups(1, kernels.F32), func(s kernels.KVSpec) bool { return s.StateBytes > 0 }) {
		return nil
	}
	return fmt.Errorf("--speculative-config: %s has layers with a recurrent state, which keeps what was guessed wrong; leave the flag out", name)
}
