package supervisor

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"reflect"

	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/journal"
)

// recall reads the journal and begins an epoch of its own.
func (s *Supervisor) recall() error {
	s.intent = core.Intent{Workers: map[string]core.Worker{}, Rotations: map[string]core.Rotation{}, Pools: map[string]core.Course{}}
	s.specs = map[string]driver.Spec{}
	meta := map[string]any{"clock": &s.clock, "epoch": &s.epoch, "counter": &s.intent.Counter, "door": &s.doorSerial, "holder": &s.holder}
	err := s.journal.Read(journal.Meta, func(key string, data []byte) error {
		if into, ok := meta[key]; ok {
			return json.Unmarshal(data, into)
		}
		return nil
	})
	if err == nil {
		err = readAll(s.journal, journal.Workers, s.intent.Workers)
	}
	if err == nil {
		err = readAll(s.journal, journal.Rotations, s.intent.Rotations)
	}
	if err == nil {
		err = readAll(s.journal, journal.Pools, s.intent.Pools)
	}
	if err == nil {
		err = readAll(s.journal, journal.Specs, s.specs)
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	s.fresh = true
	for _, w := range s.intent.Workers {
		s.fresh = s.fresh && w.Good == ""
	}
	before := s.clock.Boot
	s.clock = s.clock.resume()
	s.rebooted = before != "" && before != s.clock.Boot
	s.epoch++
	if s.holder == "" {
		s.holder = rand.Text()
	}
	if err := s.journal.Write([]journal.Change{
		{Bucket: journal.Meta, Key: "holder", Value: s.holder},
		{Bucket: journal.Meta, Key: "clock", Value: s.clock}, {Bucket: journal.Meta, Key: "epoch", Value: s.epoch},
	}); err != nil {
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
func (s *Supervisor) remember(next core.Intent) {
	var changes []journal.Change
	changes = differ(changes, journal.Workers, s.intent.Workers, next.Workers)
	changes = differ(changes, journal.Rotations, s.intent.Rotations, next.Rotations)
	changes = differ(changes, journal.Pools, s.intent.Pools, next.Pools)
	if next.Counter != s.intent.Counter {
		changes = append(changes, journal.Change{Bucket: journal.Meta, Key: "counter", Value: next.Counter})
	}
	for _, w := range next.Workers {
		for _, hash := range []string{w.Hash, w.Good} {
			if spec, ok := s.specs[hash]; ok && !s.kept(hash) {
				changes = append(changes, journal.Change{Bucket: journal.Specs, Key: hash, Value: spec})
			}
		}
	}
	s.intent = next
	s.write(changes)
}

// kept says whether a worker of the intent in force uses a hash, which then is
// in the journal already.
func (s *Supervisor) kept(hash string) bool {
	for _, w := range s.intent.Workers {
		if w.Hash == hash || w.Good == hash {
			return true
		}
	}
	return false
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
func (s *Supervisor) write(changes []journal.Change) {
	if s.diskFull != nil && len(changes) > 0 {
		changes = nil
		changes = differ(changes, journal.Workers, map[string]core.Worker{}, s.intent.Workers)
		changes = differ(changes, journal.Rotations, map[string]core.Rotation{}, s.intent.Rotations)
		changes = differ(changes, journal.Pools, map[string]core.Course{}, s.intent.Pools)
		changes = differ(changes, journal.Specs, map[string]driver.Spec{}, s.specs)
	}
	err := s.journal.Write(changes)
	if err != nil && s.diskFull == nil {
		s.log.Error("the journal cannot be written; no rotation begins until it can", "error", err)
	}
	if err == nil && s.diskFull != nil && len(changes) > 0 {
		s.log.Info("the journal can be written again")
	}
	if err != nil || len(changes) > 0 {
		s.diskFull = err
	}
}
