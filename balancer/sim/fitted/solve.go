package fitted

import "math"

// solve finds the coefficients, none below zero, that bring the points' bases
// nearest to what was measured, by the squares of the relative errors.
func solve(points []Point) []float64 {
	n := len(points[0].basis)
	out := make([]float64, n)
	// Coordinate descent: convex, and a few hundred rounds are nothing.
	for range 20000 {
		moved := 0.0
		for k := range n {
			above, below := 0.0, 0.0
			for _, p := range points {
				weight := 1 / math.Max(p.Measured*p.Measured, 1e-12)
				rest := p.Measured - dot(p.basis, out) + p.basis[k]*out[k]
				above += weight * p.basis[k] * rest
				below += weight * p.basis[k] * p.basis[k]
			}
			next := math.Max(above/below, 0)
			moved = math.Max(moved, math.Abs(next-out[k])/math.Max(next, 1e-15))
			out[k] = next
		}
		if moved < 1e-9 {
			break
		}
	}
	return out
}
