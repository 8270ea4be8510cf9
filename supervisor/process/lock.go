package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// errLocked is returned when another process holds a lock.
var errLocked = errors.New("held by another process")

// patience is how long a lock may be held by somebody who is about to let go of it.
const patience = 3 * time.Second

// takeLock opens and locks a file. Whoever asks whether it is held holds it for
// a moment, and so does a process that is forked just then until it executes
// another program, which takes long on a busy machine: one refusal is not enough.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	for late := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(late) {
			break
		}
	}
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return f, nil
}

// isLocked reports whether some process holds the lock. A shared lock is asked for,
// so that two who ask at once do not find each other.
func isLocked(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// lockOwner is the process that a lock file names.
type lockOwner struct {
	pid   int
	ticks uint64 // when it began, in clock ticks since the machine did
}

func (h lockOwner) String() string { return fmt.Sprintf("%d %d\n", h.pid, h.ticks) }

// readLockOwner reads who wrote the lock file; ok is false while the shim has not
// written yet.
func readLockOwner(path string) (lockOwner, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return lockOwner{}, false
	}
	fields := strings.Fields(string(data))
	if len(fields) != 2 {
		return lockOwner{}, false
	}
	pid, errPID := strconv.Atoi(fields[0])
	ticks, errTicks := strconv.ParseUint(fields[1], 10, 64)
	return lockOwner{pid, ticks}, errPID == nil && errTicks == nil && pid > 0
}

// beginTicks reads when a process began, from /proc.
func beginTicks(pid int) (uint64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold spaces and parentheses of its own.
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// lives reports whether the holder is still there.
func (h lockOwner) lives() bool {
	fd, ok := h.open()
	if ok {
		unix.Close(fd)
	}
	return ok
}

// open returns a pidfd of the holder if it still lives.
func (h lockOwner) open() (int, bool) {
	fd, err := unix.PidfdOpen(h.pid, 0)
	if err != nil {
		return -1, false
	}
	if ticks, err := beginTicks(h.pid); err != nil || ticks != h.ticks {
		unix.Close(fd)
		return -1, false
	}
	return fd, true
}
