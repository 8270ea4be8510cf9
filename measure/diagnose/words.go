package diagnose

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

func percent(x float64) string {
	if math.IsNaN(x) {
		return "an unknown share"
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// seconds are a time as it is best read.
func seconds(s float64) string {
	if math.IsNaN(s) {
		return "an unknown time"
	}
	return time.Duration(s * float64(time.Second)).Round(roundTo(s)).String()
}

func roundTo(s float64) time.Duration {
	switch {
	case s < 0.01:
		return 10 * time.Microsecond
	case s < 1:
		return time.Millisecond
	}
	return 10 * time.Millisecond
}
