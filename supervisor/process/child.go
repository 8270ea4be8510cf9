package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/configs/statefile"
	"roundhouse/supervisor/driver"
)

// Child is a process to start.
type Child struct {
	ID   string   // as it is known to people: "pool/name", "door/3"
	Argv []string // the program and its arguments
	// Log names a log that several children share, one after another; empty:
	// each child has its own, a new one at every start.
	Log   string
	Env   []string
	Files []*os.File // it finds them from descriptor 4 on
	CPUs  string     // kernel list format; empty: any
	Mems  string
	UID   int // 0: as this process
	GID   int
	// Confined children can gain no rights by executing anything.
	Confined bool
	// Limits are what it may use, by the name that ulimit knows them by; -1: all.
	Limits map[string]int64
	Note   json.RawMessage // kept in the record, for the successor
}

// Record is what a successor reads of a child.
type Record struct {
	ID    string          `json:"id"`
	Began time.Time       `json:"began"`
	Ended string          `json:"ended,omitempty"`
	Note  json.RawMessage `json:"note,omitempty"`
}

// Found is a child as it is now.
type Found struct {
	Record
	PID     int // 0: not running
	Running bool
}

// Manager starts, finds and ends the children of one state folder.
type Manager struct {
	dir     string   // the state folder
	shim    []string // the command that runs Shim
	changed driver.Hint

	logLimit int64 // bytes of a log that is in use

	ctx    context.Context // ends when the manager is closed
	cancel context.CancelFunc
	group  sync.WaitGroup // one watcher a child, and the keeper of logs

	mu      sync.Mutex
	watched map[string]int // pid by ID
	starved int64          // processes that the kernel had killed for memory when children were last found
}

// NewManager returns the manager of a state folder. shim is the command line
// to which a child's own is appended.
func NewManager(dir string, shim []string) (*Manager, error) {
	return newManager(dir, shim, usualLogLimit)
}

func newManager(dir string, shim []string, logLimit int64) (*Manager, error) {
	for _, sub := range []string{"run", "logs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o711); err != nil {
			return nil, err
		}
	}
	n := &Manager{dir: dir, shim: shim, changed: driver.NewHint(), watched: map[string]int{}, starved: driver.Starved(), logLimit: logLimit}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.group.Go(n.keepLogsSmall)
	return n, nil
}

// Close ends the watching and leaves the children running. Afterwards nothing
// is written: how a child ends then is told by its successor as unknown.
func (n *Manager) Close() {
	n.cancel()
	n.group.Wait()
	n.mu.Lock() // waits for an end that is being noted
	defer n.mu.Unlock()
}

// Changed delivers a value when a child has begun or ended.
func (n *Manager) Changed() <-chan struct{} { return n.changed }

// file names a child's file; "/" cannot stand in it.
func (n *Manager) file(id, ending string) string {
	return filepath.Join(n.dir, "run", strings.ReplaceAll(id, "/", "@")+ending)
}

// LogFile is where a child writes.
func (n *Manager) LogFile(id string) string {
	return filepath.Join(n.dir, "logs", strings.ReplaceAll(id, "/", "@")+".log")
}

// Start starts a child. A child of that name that lives is an error.
func (n *Manager) Start(c Child) (pid int, err error) {
	if _, err := os.Stat(c.Argv[0]); err != nil {
		return 0, fmt.Errorf("cannot start %s: %w", c.ID, err)
	}
	lock, err := takeLock(n.file(c.ID, ".lock"))
	if err != nil {
		return 0, fmt.Errorf("cannot start %s: its lock: %w", c.ID, err)
	}
	defer lock.Close() // the child has its own by then
	if err := lock.Truncate(0); err != nil {
		return 0, err
	}
	if err := n.replace(Record{ID: c.ID, Began: time.Now(), Note: c.Note}); err != nil {
		return 0, err
	}
	path := n.LogFile(c.Log)
	if c.Log == "" {
		path = n.LogFile(c.ID)
		if err := turnLog(path); err != nil {
			return 0, err
		}
	}
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	argv := append([]string(nil), n.shim...)
	argv = append(argv, "--nofile", "1048576")
	if c.CPUs != "" {
		argv = append(argv, "--cpus", c.CPUs)
	}
	if c.Mems != "" {
		argv = append(argv, "--mems", c.Mems)
	}
	if c.UID > 0 {
		argv = append(argv, "--uid", strconv.Itoa(c.UID), "--gid", strconv.Itoa(c.GID))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Limits)) {
		argv = append(argv, "--limit", name+"="+strconv.FormatInt(c.Limits[name], 10))
	}
	if c.Confined {
		argv = append(argv, "--no-new-privs")
	}
	argv = append(append(argv, "--"), c.Argv...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Env, log, log
	cmd.ExtraFiles = append([]*os.File{lock}, c.Files...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		os.Remove(n.file(c.ID, ".json"))
		return 0, fmt.Errorf("cannot start %s: %w", c.ID, err)
	}
	n.mu.Lock()
	n.watched[c.ID] = cmd.Process.Pid
	n.mu.Unlock()
	// Not counted in the group: it ends with the child, which may outlive us.
	go func() {
		sweep(cmd.Process.Pid)
		err := cmd.Wait()
		n.ended(c.ID, cmd.Process.Pid, describe(cmd.ProcessState, err))
	}()
	n.changed.Give()
	return cmd.Process.Pid, nil
}

// sweep waits until a child of ours has ended, and ends what it leaves behind: an
// engine's helpers hold its lock, its port and its memory. The child is still to be
// waited for, so that the number of its group is nobody else's.
func sweep(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = unix.Kill(-pid, unix.SIGKILL) // there may be none
}

// describe says in words how a child ended.
func describe(state *os.ProcessState, err error) string {
	if state == nil {
		return fmt.Sprint(err)
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return "killed by signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", state.ExitCode())
}

// ended notes how a child ended, unless another of its name runs by now.
func (n *Manager) ended(id string, pid int, how string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watched[id] != pid || n.ctx.Err() != nil {
		return
	}
	delete(n.watched, id)
	if how == killedEnd && driver.Starved() > n.starved {
		how += starvedEnd
	}
	if r, err := n.read(id); err == nil && (r.Ended == "" || how != unknownEnd) {
		r.Ended = how
		_ = n.write(r) // its absence is read as unknownEnd
	}
	n.changed.Give()
}

// How a child ends that was not ours when it did, that is killed outright, and
// what is added where the kernel killed somebody for memory just then.
const (
	unknownEnd = "exit status unknown"
	killedEnd  = "killed by signal killed"
	starvedEnd = " (out of memory)"
)

// replace writes the record of a new child. What is still heard of the end of
// its predecessor is no longer written.
func (n *Manager) replace(r Record) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.watched, r.ID)
	return n.write(r)
}

// write replaces a record as a whole.
func (n *Manager) write(r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return statefile.Write(n.file(r.ID, ".json"), data)
}

func (n *Manager) read(id string) (Record, error) {
	var r Record
	data, err := os.ReadFile(n.file(id, ".json"))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", n.file(id, ".json"), err)
	}
	return r, nil
}

// Find returns every child that has a record, and watches those that live.
func (n *Manager) Find() ([]Found, error) {
	names, err := os.ReadDir(filepath.Join(n.dir, "run")) // Glob takes a folder that cannot be read for an empty one
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.starved = driver.Starved()
	n.mu.Unlock()
	var out []Found
	for _, name := range names {
		base, record := strings.CutSuffix(name.Name(), ".json")
		if !record {
			continue
		}
		id := strings.ReplaceAll(base, "@", "/")
		f, err := n.find(id)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// beginTime is how long a shim may take to say who it is, on a machine that has
// other things to do as well.
const beginTime = 20 * time.Second

// holder returns the process that holds a child's lock. A shim that has just begun gets the
// time that it takes to write who it is. Until then the lock may name its
// predecessor, and one who has ended may be named while another process still has a
// copy of the lock: so who is named and does not live is looked at again for a while.
func (n *Manager) holder(id string) (h lockOwner, held bool, err error) {
	began := time.Now()
	for ; ; time.Sleep(5 * time.Millisecond) {
		if held, err = isLocked(n.file(id, ".lock")); err != nil || !held {
			return lockOwner{}, false, err
		}
		waited := time.Since(began)
		h, ok := readLockOwner(n.file(id, ".lock"))
		if ok && (h.lives() || waited > patience) {
			return h, true, nil
		}
		if waited > beginTime {
			return lockOwner{}, true, fmt.Errorf("%s holds its lock and does not say who it is", id)
		}
	}
}

func (n *Manager) find(id string) (Found, error) {
	h, held, err := n.holder(id)
	if err != nil {
		return Found{}, err
	}
	r, err := n.read(id)
	if cut := new(json.SyntaxError); errors.As(err, &cut) && !held {
		n.Forget(id) // the machine went down before the disk had it, and with it the child
		return Found{}, fmt.Errorf("%w: %w", os.ErrNotExist, err)
	}
	if err != nil {
		return Found{}, err
	}
	f := Found{Record: r}
	if !held {
		if f.Ended == "" {
			f.Ended = unknownEnd
		}
		return f, nil
	}
	f.Running = true
	f.PID = h.pid
	n.watch(id, h)
	return f, nil
}

// watch waits for the end of a child that another process started.
func (n *Manager) watch(id string, h lockOwner) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil || n.watched[id] == h.pid {
		return
	}
	fd, ok := h.open()
	if !ok {
		return
	}
	n.watched[id] = h.pid
	n.group.Go(func() {
		defer unix.Close(fd)
		if waitExit(n.ctx, fd) {
			_ = unix.Kill(-h.pid, unix.SIGKILL) // what it leaves behind, as sweep
			var status unix.WaitStatus
			how := unknownEnd
			if got, err := unix.Wait4(h.pid, &status, unix.WNOHANG, nil); err == nil && got == h.pid {
				how = "exit status " + strconv.Itoa(status.ExitStatus())
				if status.Signaled() {
					how = "killed by signal " + status.Signal().String()
				}
			}
			n.ended(id, h.pid, how)
		}
	})
}

// waitExit waits until the process of a pidfd has ended.
func waitExit(ctx context.Context, fd int) bool {
	for ctx.Err() == nil {
		polls := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(polls, 200)
		if n > 0 {
			return true
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
	return false
}

// Stop asks a child to end, and after grace ends it. It returns when the child
// is gone.
func (n *Manager) Stop(ctx context.Context, id string, grace time.Duration) error {
	h, held, err := n.holder(id)
	if err != nil || !held {
		return err
	}
	fd, ok := h.open()
	if !ok {
		return nil
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot stop %s: %w", id, err)
	}
	polite, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if waitExit(polite, fd) {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// The whole group, while its leader still lives and the number is its own.
	if err := unix.Kill(-h.pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot kill %s: %w", id, err)
	}
	if !waitExit(ctx, fd) {
		return fmt.Errorf("cannot kill %s: it is still there", id)
	}
	return nil
}

// Forget drops a child's record once it has ended.
func (n *Manager) Forget(id string) {
	os.Remove(n.file(id, ".json"))
}

// Running reports whether a child lives.
func (n *Manager) Running(id string) bool {
	held, err := isLocked(n.file(id, ".lock"))
	return err != nil || held
}

// Ended says how a child ended.
func (n *Manager) Ended(id string) string {
	r, err := n.read(id)
	if err != nil || r.Ended == "" {
		return unknownEnd
	}
	return r.Ended
}
