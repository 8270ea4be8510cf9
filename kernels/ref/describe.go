package ref

import "roundhouse/kernels"

// Describe chooses from one row of logits and says how the choice stands among the
// others: the definition of Sample, for backends that bring the row to the host.
func Describe(logits []float32, s *kernels.Sampling) kernels.Choice { return describe(logits, s) }
