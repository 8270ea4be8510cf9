package ref

import "roundhouse/kernels"

// Describe chooses from one row of logits and says how the choice stands among the
// others: the definition of Sample, for backends that bring the row to the host.
func Describe(logits []float32, s *kernels.Sampling) kernels.Choice { return describe(logits, s) }

// Draw takes a token from candidates that stand in order, the greatest logit first: what
// min_p, top_k and top_p leave of them, by the random number of s.
func Draw(kept []kernels.Candidate, s *kernels.Sampling) int32 { return draw(kept, s) }

// Better orders candidates: the greater logit first, ties to the lower token.
func Better(a, b kernels.Candidate) int { return better(a, b) }
