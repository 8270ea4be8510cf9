package top

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"roundhouse/live"
)

// House is the state as the stream has told it.
type House struct {
	Hello  live.Hello
	State  live.State
	Events []live.Event // the last few
	Course Course       // of the last figures
	Told   time.Time    // when something was last told
	Gone   string       // why nothing is told any more; empty: it is
}

// keptEvents is how many events are at hand.
const keptEvents = 200

// Take takes one message of the stream.
func (h *House) Take(name string, data []byte, now time.Time) error {
	h.Told, h.Gone = now, ""
	switch name {
	case "hello":
		return json.Unmarshal(data, &h.Hello)
	case "state":
		h.State = live.State{}
		return json.Unmarshal(data, &h.State)
	case "change":
		return h.change(data)
	case "event":
		var e live.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		h.Events = append(h.Events, e)
		h.Events = h.Events[max(0, len(h.Events)-keptEvents):]
	case "sample":
		var m live.Sample
		if err := json.Unmarshal(data, &m); err != nil {
			return err
		}
		h.Course.add(&m, h.State.Workers)
	case "bye":
		var b live.Bye
		if err := json.Unmarshal(data, &b); err != nil {
			return err
		}
		h.Gone = b.Reason
	}
	return nil
}

// change puts what has changed in its place.
func (h *House) change(data []byte) error {
	var c live.Change
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	s := &h.State
	s.At = c.At
	if c.Verdict != nil {
		s.Verdict = *c.Verdict
	}
	if c.Door != nil {
		s.Door = *c.Door
	}
	if c.Doors != nil {
		s.Doors = c.Doors
	}
	if c.Supervisor != nil {
		s.Supervisor = c.Supervisor
	}
	if c.Pools != nil {
		s.Pools = *c.Pools
	}
	if c.Figures != nil {
		s.Figures = *c.Figures
	}
	if c.Rotations != nil {
		s.Rotations = *c.Rotations
	}
	if c.Schedules != nil {
		s.Schedules = *c.Schedules
	}
	for _, fields := range c.Workers {
		if err := h.worker(fields); err != nil {
			return err
		}
	}
	for _, id := range c.Gone {
		if i := h.find(id); i >= 0 {
			s.Workers = slices.Delete(s.Workers, i, i+1)
		}
	}
	return nil
}

// worker puts a worker's changed fields in their places.
func (h *House) worker(fields map[string]json.RawMessage) error {
	var id string
	if err := json.Unmarshal(fields["id"], &id); err != nil {
		return fmt.Errorf("a worker without an id: %w", err)
	}
	i := h.find(id)
	if i < 0 {
		i = len(h.State.Workers)
		h.State.Workers = append(h.State.Workers, worker{})
	}
	// A new value: what was shown may be looked at still.
	data, err := json.Marshal(h.State.Workers[i])
	if err != nil {
		return err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	maps.Copy(all, fields)
	if data, err = json.Marshal(all); err != nil {
		return err
	}
	var next worker
	if err := json.Unmarshal(data, &next); err != nil {
		return err
	}
	h.State.Workers[i] = next
	return nil
}

// copy is the house as it is now.
func (h *House) copy() *House {
	c := *h
	c.State.Workers, c.Events, c.Course = slices.Clone(h.State.Workers), slices.Clone(h.Events), h.Course.copy()
	return &c
}

func (h *House) find(id string) int {
	return slices.IndexFunc(h.State.Workers, func(w worker) bool { return w.ID == id })
}
