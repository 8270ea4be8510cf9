package journal

import (
	"encoding/binary"
	"encoding/json"
	"time"

	bolt "go.etcd.io/bbolt"
)

// How long and how many events are kept.
const (
	KeepFor    = 30 * 24 * time.Hour
	KeepEvents = 100_000
)

// Event is one thing that happened, for people.
type Event struct {
	ID     uint64    `json:"id"`
	At     time.Time `json:"at"`
	Pool   string    `json:"pool,omitempty"`
	Worker string    `json:"worker,omitempty"` // pool/name
	Kind   string    `json:"kind"`
	Who    string    `json:"who"`
	Text   string    `json:"text"`
}

// Append writes events and gives each its number. Older ones than are kept go.
func (j *Journal) Append(list []Event) error {
	if len(list) == 0 {
		return nil
	}
	return guard(func() error {
		return j.db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(events))
			if err != nil {
				return err
			}
			for i := range list {
				if list[i].ID, err = b.NextSequence(); err != nil {
					return err
				}
				data, err := json.Marshal(list[i])
				if err != nil {
					return err
				}
				if err := b.Put(binary.BigEndian.AppendUint64(nil, list[i].ID), seal(data)); err != nil {
					return err
				}
			}
			return trim(b, list[len(list)-1])
		})
	})
}

// trim drops what is too old or too many, a few at a time.
func trim(b *bolt.Bucket, last Event) error {
	c := b.Cursor()
	for range 64 {
		k, v := c.First()
		if k == nil || len(k) != 8 {
			return nil
		}
		if last.ID-binary.BigEndian.Uint64(k) < KeepEvents {
			var e Event
			data, err := unseal(v)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(data, &e); err != nil {
				return err
			}
			if last.At.Sub(e.At) < KeepFor {
				return nil
			}
		}
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// Events returns up to limit of the events after the given number, the latest
// ones where there are more.
func (j *Journal) Events(after uint64, limit int) ([]Event, error) {
	var out []Event
	err := guard(func() error {
		return j.db.View(func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte(events))
			if b == nil {
				return nil
			}
			c := b.Cursor()
			for k, v := c.Last(); k != nil && len(out) < limit && binary.BigEndian.Uint64(k) > after; k, v = c.Prev() {
				var e Event
				data, err := unseal(v)
				if err != nil {
					return err
				}
				if err := json.Unmarshal(data, &e); err != nil {
					return err
				}
				out = append(out, e)
			}
			return nil
		})
	})
	for i, k := 0, len(out)-1; i < k; i, k = i+1, k-1 {
		out[i], out[k] = out[k], out[i]
	}
	return out, err
}
