package verdict

import "time"

// Facts are what a verdict is made of. A figure that is not known is nil.
type Facts struct {
	At      time.Time
	Doors   []Door
	Journal string // why the supervisor cannot write its journal; empty: it can
	Pools   []Pool
	Workers []Worker
}

// Door is one door.
type Door struct {
	ID     string
	Silent string // why it does not answer; empty: it does
}

// Pool is one pool. What is said to be of five minutes is of a window of that length
// that ends now.
type Pool struct {
	Name           string
	Desired, Ready int
	FailedShare    *float64 // of five minutes
	Refused        *float64 // a second, of five minutes
	TTFT           *float64 // the 95th percentile, of five minutes
	KVPromised     *float64 // now
	Waiting        int      // now
	WaitingBefore  *int     // five minutes ago
	Rotation       Rotation
}

// Rotation is a pool's last one.
type Rotation struct {
	State   string // running, done, rolled_back, halted; empty: none
	Current string // the worker whose turn it is, pool/name
	Reason  string
	Done    int
	Of      int
	Ended   time.Time
}

// Worker is one worker.
type Worker struct {
	ID, Pool  string
	State     string
	Reason    string
	Since     time.Time
	NextTry   *time.Time
	Restarts  int
	Streams   int      // in flight
	ReportAge *float64 // seconds
	Speed     *float64 // tokens a second of one stream
}
