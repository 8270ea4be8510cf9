package worker

// PositionsOf is positions.
func PositionsOf(tokens int, items []Item) ([]int32, int) { return positions(tokens, items) }
