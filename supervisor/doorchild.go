package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/journal"
	"roundhouse/supervisor/process"
)

// doorUser is who the door runs as when the supervisor is root: a user and
// group that nothing else uses, without a name, a home or groups.
const doorUser = 60777

// listenerFD is where the door finds its listener, after the lock.
const listenerFD = 4

// doorNote is what a door's record keeps.
type doorNote struct {
	Socket string `json:"socket"`
	Listen string `json:"listen"` // as configured
	Actual string `json:"actual"`
}

const doorPrefix = "door/"

// doorDir is the door's own folder. As another user the door may not be let
// into state_dir, so root gives it one under /run, named by state_dir.
func (s *Supervisor) doorDir() string {
	if os.Geteuid() != 0 {
		return filepath.Join(s.options.Config.StateDir, "door")
	}
	sum := sha256.Sum256([]byte(s.options.Config.StateDir))
	return filepath.Join("/run/roundhouse", "door-"+hex.EncodeToString(sum[:6]))
}

// openDoor takes over a door that runs, or binds the address and lets the loop
// start one.
func (s *Supervisor) openDoor() error {
	found, err := s.children.Find()
	if err != nil {
		return err
	}
	for _, f := range found {
		if !strings.HasPrefix(f.ID, doorPrefix) || !f.Running {
			continue
		}
		var note doorNote
		if err := json.Unmarshal(f.Note, &note); err != nil {
			return fmt.Errorf("the record of %s: %w", f.ID, err)
		}
		s.adoptDoor(strings.TrimPrefix(f.ID, doorPrefix), note)
	}
	if s.gate.listen != nil || len(s.gate.doors) > 0 {
		return nil
	}
	return s.bind()
}

// adoptDoor takes over a door that runs, and a copy of its listener where the
// kernel grants it; without one the next door binds the address anew.
func (s *Supervisor) adoptDoor(id string, note doorNote) {
	s.gate.address = note.Actual
	s.meet(newDoor(id, note.Socket, true))
	s.events.note("", "", "adopted", "door "+id+", found running")
	if n, err := strconv.ParseUint(strings.TrimPrefix(id, "door-"), 10, 64); err == nil {
		s.memory.doorSerial = max(s.memory.doorSerial, n)
	}
	if s.gate.listen != nil {
		return
	}
	_, text, err := net.SplitHostPort(note.Actual)
	port, errPort := strconv.Atoi(text)
	var listener *os.File
	if err = errors.Join(err, errPort); err == nil {
		listener, err = s.children.Listener(doorPrefix+id, port)
	}
	if err != nil {
		s.log.Info("the door keeps its listener to itself; it is bound anew once that door ends", "error", err)
		return
	}
	s.gate.listen = listener
}

// bind takes the door's address.
func (s *Supervisor) bind() error {
	address := s.plan.config.Door.Listen
	l, err := control.Listen("door.listen", address)
	if err != nil {
		return err
	}
	defer l.Close() // the copy stays
	if s.gate.listen, err = l.(*net.TCPListener).File(); err != nil {
		return fmt.Errorf("door.listen: %w", err)
	}
	s.gate.address = l.Addr().String()
	return nil
}

// meet begins to follow a door.
func (s *Supervisor) meet(d *door) {
	ctx, cancel := context.WithCancel(s.ctx)
	d.cancel = cancel
	s.gate.doors[d.id] = d
	s.group.Go(func() {
		d.follow(ctx, &s.set, s.clock.Now, func(n doorUpdate) { s.tell(func() { s.takeDoorUpdate(n) }) })
	})
}

// tendDoors lets go of doors that have ended, and starts one where none is.
func (s *Supervisor) tendDoors() {
	if len(s.options.Doors) > 0 {
		return
	}
	serving := false
	for id, d := range s.gate.doors {
		if s.children.Running(doorPrefix + id) {
			serving = serving || !d.leaving
			continue
		}
		d.cancel()
		delete(s.gate.doors, id)
		how := s.children.Ended(doorPrefix + id)
		os.Remove(d.socket)
		defer s.children.Forget(doorPrefix + id)
		if d.leaving {
			s.events.note("", "", "door", id+" has ended: "+how)
			continue
		}
		s.events.note("", "", "crashed", "door "+id+": "+how)
		s.doorFailed(d)
	}
	if serving || s.ending || s.clock.Now().Before(s.gate.try) {
		return
	}
	if _, err := s.startDoor(); err != nil {
		s.events.note("", "", "failed", "door: "+err.Error())
		s.gate.try = s.clock.Now().Add(time.Second)
		if !s.serving {
			s.stop(err)
		}
	}
}

// doorFailed decides when the next door is started: at once after one that
// served, later and later after one that never did. A program that has just
// begun gives up after the third, while whoever typed the command looks on.
func (s *Supervisor) doorFailed(d *door) {
	if d.state != nil {
		s.gate.failures = 0
	}
	s.gate.failures++
	wait := min(time.Duration(s.gate.failures-1)*time.Second, 30*time.Second)
	s.gate.try = s.clock.Now().Add(wait)
	if s.gate.failures >= 3 && !s.serving {
		s.stop(fmt.Errorf("the door does not start: %s\n%s", s.children.Ended(doorPrefix+d.id), tail(s.children.OpenLog(s.ctx, "door", driver.LogOptions{Tail: 12}))))
	}
}

// passable reports whether the door's user gets through a folder and all above it. It
// does not through root's own home, say; what lies there it is handed open.
func passable(folder string) bool {
	folder, err := filepath.EvalSymlinks(folder)
	for ; err == nil; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		if err != nil || info.Mode().Perm()&1 == 0 {
			return false
		}
		if folder == filepath.Dir(folder) {
			return true
		}
	}
	return false
}

// doorFolders makes the folders that the door keeps beside the journal, where they outlast
// the machine's next start, as /run does not, and says where it finds them. Those that it
// may not be let into are handed to it open, behind the other files.
func (s *Supervisor) doorFolders(files []*os.File) (all []*os.File, kept map[string]string, err error) {
	kept = map[string]string{}
	for _, name := range []string{"batches", "usage"} {
		dir := filepath.Join(s.options.Config.StateDir, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return files, nil, err
		}
		if kept[name] = dir; os.Geteuid() != 0 {
			continue
		}
		if err := os.Lchown(dir, doorUser, doorUser); err != nil {
			return files, nil, err
		}
		if !passable(filepath.Dir(dir)) {
			folder, err := os.Open(dir)
			if err != nil {
				return files, nil, err
			}
			kept[name] = "/proc/self/fd/" + strconv.Itoa(listenerFD+len(files))
			files = append(files, folder)
		}
	}
	return files, kept, nil
}

// doorName is what a door calls itself to workers and other doors: no door of another
// host may have the name.
func (s *Supervisor) doorName(id string) string {
	return id + "-" + strings.ToLower(s.memory.holder[:min(8, len(s.memory.holder))])
}

// startDoor starts a door on the listener.
func (s *Supervisor) startDoor() (*door, error) {
	if s.gate.listen == nil {
		if err := s.bind(); err != nil {
			return nil, err
		}
	}
	s.memory.doorSerial++
	s.memory.write([]journal.Change{{Bucket: journal.Meta, Key: "door", Value: s.memory.doorSerial}})
	id := "door-" + strconv.FormatUint(s.memory.doorSerial, 10)
	dir := s.doorDir()
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	files, kept, err := s.doorFolders([]*os.File{s.gate.listen})
	for _, folder := range files[1:] {
		defer folder.Close() // the door has its own by then
	}
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, id+".sock")
	if len(socket) > 100 {
		return nil, fmt.Errorf("state_dir: the private socket's path %s has %d letters, a socket's may have 100; use a shorter folder", socket, len(socket))
	}
	note, err := json.Marshal(doorNote{socket, s.plan.config.Door.Listen, s.gate.address})
	if err != nil {
		return nil, err
	}
	child := process.Child{
		ID: doorPrefix + id, Log: "door", Env: s.options.DoorEnv, Files: files, Confined: true, Note: note,
		Argv: []string{s.options.Program, "balance", "--listener-fd", strconv.Itoa(listenerFD), "--socket", socket, "--id", s.doorName(id), "--state-dir", dir, "--batches", kept["batches"], "--usage", kept["usage"], "--log-format", s.plan.config.Log.Format},
	}
	if os.Geteuid() == 0 {
		if err := os.Lchown(dir, doorUser, doorUser); err != nil { // what is in it is the door's own
			return nil, err
		}
		child.UID, child.GID = doorUser, doorUser
	}
	if _, err := s.children.Start(child); err != nil {
		return nil, err
	}
	d := newDoor(id, socket, true)
	s.meet(d)
	return d, nil
}
