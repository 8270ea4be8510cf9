package surface

// The priority classes, served strictly in this order.
const (
	High = iota
	Normal
	Low
	Priorities // how many there are
)

// PriorityNames are the names that clients give.
var PriorityNames = [...]string{"high", "normal", "low"}

// PriorityOf reads a name; an unknown one counts as normal.
func PriorityOf(name string) (int, bool) {
	for i, n := range PriorityNames {
		if n == name {
			return i, true
		}
	}
	return Normal, false
}
