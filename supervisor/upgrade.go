package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/supervisor/core"
)

// ErrUpgrade is returned by Run when this program is to be executed anew from
// its file. Workers and door run on; the new program adopts them.
var ErrUpgrade = errors.New("execute this program anew")

// handoverTime is how long a new door has to be ready beside the old one.
const handoverTime = time.Minute

// handover is one door taking over from another.
type handover struct {
	from, to *door
	until    time.Time
}

// upgrade makes sure that the program on the disk runs and takes the
// configuration, and ends Run so that it is executed.
func (s *Supervisor) upgrade(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.options.Program, "version", "--json").Output()
	var v struct{ Version string }
	if err == nil {
		err = json.Unmarshal(out, &v)
	}
	if err != nil {
		fail(w, http.StatusConflict, fmt.Sprintf("the program at %s does not run: %v; nothing is changed", s.options.Program, err))
		return
	}
	if s.options.File != "" {
		if out, err := exec.CommandContext(ctx, s.options.Program, "validate", s.options.File).CombinedOutput(); err != nil {
			fail(w, http.StatusConflict, fmt.Sprintf("version %s does not take the configuration; nothing is changed: %v\n%s", v.Version, err, out))
			return
		}
	}
	by := control.Asker(r)
	if err := s.ask(r.Context(), func() {
		s.events.noteBy(by, "", "", "upgrade", "from "+s.options.Version+" to "+v.Version)
		s.flushEvents()
	}); err != nil {
		fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answer := fmt.Sprintf("{\"schema\":1,\"from\":%q,\"to\":%q}\n", s.options.Version, v.Version)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer))) // so that it is whole with its last byte, before this program's end
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, answer) // the asker may be gone
	_ = http.NewResponseController(w).Flush()
	s.tell(func() { s.stop(ErrUpgrade) })
}

// tendHandover has a door of this program's version take over from one of
// another. The old one serves on until the new one is ready; if that does not
// become ready, it goes, and the old one stays.
func (s *Supervisor) tendHandover() {
	h := s.gate.handover
	if h == nil {
		s.beginHandover()
		return
	}
	if s.gate.doors[h.to.id] != h.to || s.clock.Now().After(h.until) {
		s.events.note("", "", "door", fmt.Sprintf("%s was not ready within %v; %s serves on", h.to.id, handoverTime, h.from.id))
		if s.gate.doors[h.to.id] == h.to {
			s.dismiss(h.to)
		}
		s.gate.handover, s.gate.handedOver = nil, true
		return
	}
	if h.to.state == nil || h.to.state.Phase != phase.Ready || !h.to.acked(s.set.Load()) || !s.reaches(h.to) {
		return
	}
	s.events.note("", "", "door", fmt.Sprintf("%s takes over from %s", h.to.id, h.from.id))
	s.dismiss(h.from)
	s.gate.handover, s.gate.handedOver = nil, true
}

// reaches reports whether a door has reached every worker that is ready.
func (s *Supervisor) reaches(d *door) bool {
	for id, w := range s.memory.intent.Workers {
		if w.Phase != core.Ready {
			continue
		}
		if st := findWorker(d.state, id); st == nil || !st.Reached {
			return false
		}
	}
	return true
}

func (s *Supervisor) beginHandover() {
	if s.gate.handedOver || s.gate.listen == nil || len(s.gate.doors) != 1 {
		return
	}
	for _, d := range s.gate.doors {
		if d.state == nil || d.leaving || d.state.Build == s.options.Version || d.state.Build == "" {
			continue
		}
		next, err := s.startDoor()
		if err != nil {
			s.events.note("", "", "failed", "door: "+err.Error())
			s.gate.handedOver = true
			return
		}
		s.gate.handover = &handover{from: d, to: next, until: s.clock.Now().Add(handoverTime)}
		return
	}
}

// dismiss tells a door to serve what it has to its end and go.
func (s *Supervisor) dismiss(d *door) {
	d.leaving = true
	s.group.Go(func() {
		if _, _, err := d.ask(s.ctx, http.MethodPost, "/shutdown", []byte("{}")); err != nil {
			s.log.Warn("door does not take its leave", "door", d.id, "error", err)
		}
	})
}
