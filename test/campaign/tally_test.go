package campaign

import (
	"fmt"
	"io"
	"sync"
	"text/tabwriter"

	"roundhouse/test/counting"
)

// tally is what one part of the campaign came to.
type tally struct {
	part      string
	requests  int64
	faults    int
	rotations int
	c         *checked
	ended     string // workers that nobody here ended
	grown     string // memory
}

// table is what all parts came to. The last thing that a run prints is it.
type table struct {
	mu   sync.Mutex
	rows []tally
}

var results table

func (t *table) add(row tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, row)
}

func (t *table) print(to io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "part\trequests\tfaults\trotations\twhole\tlost\trefused\tmixed\texcused\tworkers ended\tmemory, MiB")
	for _, r := range t.rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", r.part, r.requests, r.faults, r.rotations, r.c.whole.Load(),
			r.c.fates[counting.Lost], r.c.fates[counting.Refused], r.c.fates[counting.Mixed], r.c.excuse, r.ended, r.grown)
	}
	w.Flush()
}
