package supervisor

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/journal"
)

// memory is what outlives this program: the journal, and what of it is in force.
type memory struct {
	log     *slog.Logger
	journal *journal.Journal
	clock   clock
	intent  core.Intent
	specs   map[string]driver.Spec // every hash that a worker may need
	epoch   uint64
	holder  string // tells this journal's supervisor to the doors, through all its lives
	// doorSerial counts the doors that were started.
	doorSerial uint64

	fresh    bool  // no worker of this state folder was ever ready
	rebooted bool  // the machine was, since the journal was written
	failed   error // the last write's
	disk     disk
}

// openMemory opens the journal of a state folder.
func openMemory(dir string, log *slog.Logger) (memory, error) {
	j, err := journal.Open(filepath.Join(dir, "journal"))
	if err != nil {
		return memory{}, fmt.Errorf("state_dir %s: %w", dir, err)
	}
	return memory{log: log, journal: j, disk: disk{dir: dir}}, nil
}

// recall reads the journal and begins an epoch of its own.
func (m *memory) recall() error {
	m.intent = core.Intent{Workers: map[string]core.Worker{}, Rotations: map[string]core.Rotation{}, Pools: map[string]core.PoolRecord{}}
	m.specs = map[string]driver.Spec{}
	meta := map[string]any{"clock": &m.clock, "epoch": &m.epoch, "counter": &m.intent.Counter, "door": &m.doorSerial, "holder": &m.holder}
	err := m.journal.Read(journal.Meta, func(key string, data []byte) error {
		if into, ok := meta[key]; ok {
			return json.Unmarshal(data, into)
		}
		return nil
	})
	if err == nil {
		err = readAll(m.journal, journal.Workers, m.intent.Workers)
	}
	if err == nil {
		err = readAll(m.journal, journal.Rotations, m.intent.Rotations)
	}
	if err == nil {
		err = readAll(m.journal, journal.Pools, m.intent.Pools)
	}
	if err == nil {
		err = readAll(m.journal, journal.Specs, m.specs)
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	m.fresh = true
	for _, w := range m.intent.Workers {
		m.fresh = m.fresh && w.Good == ""
	}
	before := m.clock.Boot
	m.clock = m.clock.resume()
	m.rebooted = before != "" && before != m.clock.Boot
	m.epoch++
	if m.holder == "" {
		m.holder = rand.Text()
	}
	changes := []journal.Change{
		{Bucket: journal.Meta, Key: "holder", Value: m.holder},
		{Bucket: journal.Meta, Key: "clock", Value: m.clock}, {Bucket: journal.Meta, Key: "epoch", Value: m.epoch},
	}
	keep := used(m.intent)
	for hash := range m.specs {
		if !keep[hash] { // of a version that kept them all
			changes = append(changes, journal.Change{Bucket: journal.Specs, Key: hash})
			delete(m.specs, hash)
		}
	}
	if err := m.journal.Write(changes); err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	return nil
}

func readAll[V any](j *journal.Journal, bucket string, into map[string]V) error {
	return j.Read(bucket, func(key string, data []byte) error {
		var v V
		if err := json.Unmarshal(data, &v); err != nil {
			return fmt.Errorf("%s/%s: %w", bucket, key, err)
		}
		into[key] = v
		return nil
	})
}

// remember writes what differs between the intent in force and the next one,
// and puts the next one in force. Where the disk is full the next one is in
// force all the same: service goes before memory.
func (m *memory) remember(next core.Intent) {
	var changes []journal.Change
	changes = differ(changes, journal.Workers, m.intent.Workers, next.Workers)
	changes = differ(changes, journal.Rotations, m.intent.Rotations, next.Rotations)
	changes = differ(changes, journal.Pools, m.intent.Pools, next.Pools)
	if next.Counter != m.intent.Counter {
		changes = append(changes, journal.Change{Bucket: journal.Meta, Key: "counter", Value: next.Counter})
	}
	before, after := used(m.intent), used(next)
	for hash := range after {
		if spec, ok := m.specs[hash]; ok && !before[hash] {
			changes = append(changes, journal.Change{Bucket: journal.Specs, Key: hash, Value: spec})
		}
	}
	for hash := range before {
		if !after[hash] {
			changes = append(changes, journal.Change{Bucket: journal.Specs, Key: hash})
		}
	}
	m.intent = next
	m.write(changes)
}

// used are the hashes that an intent may start a worker with again, or that a
// running one was started with. The journal has what these stand for, and nothing of
// others: a spec holds a worker's environment, with its secrets.
func used(in core.Intent) map[string]bool {
	out := map[string]bool{}
	for _, w := range in.Workers {
		out[w.Hash], out[w.Good], out[w.Former] = true, true, true
	}
	for _, c := range in.Pools {
		out[c.Relief] = true
	}
	delete(out, "")
	return out
}

// forget lets go of the specs that are neither used nor planned.
func (m *memory) forget(planned map[string]driver.Spec) {
	keep := used(m.intent)
	for hash := range m.specs {
		if _, ok := planned[hash]; !ok && !keep[hash] {
			delete(m.specs, hash)
		}
	}
}

func differ[V any](changes []journal.Change, bucket string, old, next map[string]V) []journal.Change {
	for key, v := range next {
		if was, ok := old[key]; !ok || !reflect.DeepEqual(was, v) {
			changes = append(changes, journal.Change{Bucket: bucket, Key: key, Value: v})
		}
	}
	for key := range old {
		if _, ok := next[key]; !ok {
			changes = append(changes, journal.Change{Bucket: bucket, Key: key})
		}
	}
	return changes
}

// write writes to the journal, and whole intents again once a full disk has
// room.
func (m *memory) write(changes []journal.Change) {
	if m.failed != nil && len(changes) > 0 {
		changes = nil
		changes = differ(changes, journal.Workers, map[string]core.Worker{}, m.intent.Workers)
		changes = differ(changes, journal.Rotations, map[string]core.Rotation{}, m.intent.Rotations)
		changes = differ(changes, journal.Pools, map[string]core.PoolRecord{}, m.intent.Pools)
		for hash := range used(m.intent) {
			if spec, ok := m.specs[hash]; ok {
				changes = append(changes, journal.Change{Bucket: journal.Specs, Key: hash, Value: spec})
			}
		}
	}
	err := m.journal.Write(changes)
	if err != nil && m.failed == nil {
		m.log.Error("the journal cannot be written; no rotation begins until it can", "error", err)
	}
	if err == nil && m.failed != nil && len(changes) > 0 {
		m.log.Info("the journal can be written again")
	}
	if err != nil || len(changes) > 0 {
		m.failed = err
	}
}

// leastRoom is what must be free where the journal lies: it grows in steps, and
// the workers' logs want room as well.
const leastRoom = 1 << 20

// noRoom reports whether the journal's disk is full. It is looked at once a second.
func (m *memory) noRoom(now time.Time) bool {
	if now.Sub(m.disk.looked) < time.Second {
		return m.disk.full
	}
	var st unix.Statfs_t
	full := unix.Statfs(m.disk.dir, &st) == nil && st.Bavail*uint64(st.Bsize) < leastRoom
	if full != m.disk.full {
		text := "has room again"
		if full {
			text = "is full; no rotation begins until it has room"
		}
		m.log.Warn("the disk of state_dir " + text)
	}
	m.disk.looked, m.disk.full = now, full
	return full
}

// disk is how the journal's disk was when it was last looked at.
type disk struct {
	dir    string
	looked time.Time
	full   bool
}
