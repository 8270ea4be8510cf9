package pods

import (
	"time"

	"roundhouse/kube"
)

const (
	// lasts is how long a Lease holds that is not renewed.
	lasts = 15 * time.Second
	// margin is how much earlier its holder takes it for lost.
	margin = 5 * time.Second
)

// lead knows whether this door may act: by how long a Lease has not changed here, never by
// the clock of another machine.
type lead struct {
	holder  string
	record  kube.Record
	known   bool
	read    time.Time // when its record was read
	changed time.Time // when another word of its holder was seen first
	wrote   time.Time // when this door began to write its own last word
}

// note takes in what the Lease says.
func (l *lead) note(r kube.Record, now time.Time) {
	if !l.known || r.Holder != l.record.Holder || r.Renewed != l.record.Renewed {
		l.changed = now
	}
	l.record, l.known = r, true
}

// holds reports whether this door may act.
func (l *lead) holds(now time.Time) bool {
	return l.known && l.record.Holder == l.holder && now.Sub(l.wrote) < lasts-margin
}

// free reports whether this door may take the Lease, which another does not renew.
func (l *lead) free(now time.Time) bool {
	return l.known && l.record.Holder != l.holder && (l.record.Holder == "" || now.Sub(l.changed) >= lasts)
}
