package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs/statefile"
)

// Term is how long a door obeys no other supervisor after a PUT.
const Term = 30 * time.Second

// Ahead is how far ahead a lease is written down. It is written again when
// less than the lease itself is left, so that a supervisor that renews it every
// second costs a write every ten.
const Ahead = Term + 10*time.Second

// ErrEpoch refuses a set of a supervisor that another has replaced, or that
// another one's lease keeps out.
var ErrEpoch = errors.New("another supervisor has taken over, or holds the lease")

// Lease says whom a door obeys: the supervisor that it obeyed last, until its
// time is over. A supervisor that has been started again on the same journal
// is the same holder and need not wait: the journal's lock shows that its
// predecessor is dead. Any other one waits, however high its epoch.
type Lease struct {
	Until time.Time
	Kept  time.Time // as it is written down
}

// Admits reports whether a set may be put in force now, in place of the present
// one.
func (l *Lease) Admits(next, now *control.WorkerSet, at time.Time) error {
	switch {
	case next.Epoch < now.Epoch || next.Epoch == now.Epoch && next.Version < now.Version:
		return fmt.Errorf("%w: this door obeys epoch %d, version %d", ErrEpoch, now.Epoch, now.Version)
	case at.Before(l.Until) && (next.Holder != now.Holder || next.Holder == "" && next.Epoch > now.Epoch):
		return fmt.Errorf("%w: the lease of epoch %d runs for another %v", ErrEpoch, now.Epoch, l.Until.Sub(at).Round(time.Second))
	}
	return nil
}

// Kept is the file that a door starts from.
type Kept struct {
	control.WorkerSet
	LeaseUntil time.Time `json:"lease_until"`
}

const setFile = "worker-set.json"

// Keep writes the set beside the old one and renames it, so that a cut file
// is never read.
func Keep(dir string, set *control.WorkerSet, until time.Time) error {
	if dir == "" {
		return nil
	}
	b, err := json.Marshal(Kept{*set, until})
	if err != nil {
		return err
	}
	return statefile.Write(filepath.Join(dir, setFile), b) // for its owner alone: it holds the workers' API keys
}

// Read reads what was kept; a set without an epoch was never kept.
func Read(dir string) (k Kept, err error) {
	b, err := os.ReadFile(filepath.Join(dir, setFile))
	if errors.Is(err, os.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	return k, err
}
