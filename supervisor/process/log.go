package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"roundhouse/supervisor/driver"
)

// keptLogs is how many logs of former generations stay.
const keptLogs = 4

// usualLogLimit is how large a log grows before it is turned while in use.
const usualLogLimit = 64 << 20

// turnLog moves a log and its predecessors one place on.
func turnLog(path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for i := keptLogs - 1; i >= 1; i-- {
		err := os.Rename(path+"."+strconv.Itoa(i), path+"."+strconv.Itoa(i+1))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Rename(path, path+".1")
}

// limitTime is how often logs are looked at for their size.
const limitTime = 10 * time.Second

// keepLogsSmall turns the logs that have grown too large until the manager is closed.
func (n *Manager) keepLogsSmall() {
	tick := time.NewTicker(limitTime)
	defer tick.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-tick.C:
			n.limitLogs()
		}
	}
}

// limitLogs turns the logs that have grown too large. Their writers go on with
// the same file, so it is copied and emptied; they append, so they go on at
// its new end. A log that cannot be copied, for want of room most likely, is emptied
// all the same at twice the size: the journal is worth more.
func (n *Manager) limitLogs() {
	paths, err := filepath.Glob(filepath.Join(n.dir, "logs", "*.log"))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || info.Size() < n.logLimit {
			continue
		}
		if copyAway(path) != nil && info.Size() >= 2*n.logLimit {
			_ = os.Truncate(path, 0) // looked at again soon
		}
	}
}

// copyAway copies a log to the first of the former ones and empties it.
func copyAway(path string) error {
	from, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	for i := keptLogs - 1; i >= 1; i-- {
		_ = os.Rename(path+"."+strconv.Itoa(i), path+"."+strconv.Itoa(i+1)) // absent: nothing to move
	}
	to, err := os.OpenFile(path+".1", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		os.Remove(path + ".1")
		return err
	}
	return from.Truncate(0)
}

// OpenLog opens a child's log as the options say.
func (n *Manager) OpenLog(ctx context.Context, id string, options driver.LogOptions) (io.ReadCloser, error) {
	f, err := os.Open(n.LogFile(id))
	if err != nil {
		return nil, err
	}
	if err := seekTail(f, options.Tail); err != nil {
		f.Close()
		return nil, err
	}
	if !options.Follow {
		return f, nil
	}
	return &follower{ctx: ctx, path: n.LogFile(id), file: f}, nil
}

// seekTail leaves f before its last lines.
func seekTail(f *os.File, lines int) error {
	if lines <= 0 {
		return nil
	}
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	found := -1 // the newline that ends the last line does not count
	for at > 0 {
		size := min(at, int64(len(buf)))
		at -= size
		if _, err := f.ReadAt(buf[:size], at); err != nil {
			return err
		}
		for part := buf[:size]; ; {
			i := bytes.LastIndexByte(part, '\n')
			if i < 0 {
				break
			}
			if found++; found == lines {
				_, err := f.Seek(at+int64(i)+1, io.SeekStart)
				return err
			}
			part = part[:i]
		}
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// follower reads a log as it grows, also past its turn to another file.
type follower struct {
	ctx  context.Context
	path string
	file *os.File
}

// Read waits for more where the file ends. It returns io.EOF when the
// follower's context has ended.
func (f *follower) Read(p []byte) (int, error) {
	for {
		n, err := f.file.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		select {
		case <-f.ctx.Done():
			return 0, io.EOF
		case <-time.After(200 * time.Millisecond):
		}
		f.turn()
	}
}

// turn goes on with the file that now has the name, and from the start where
// the file was emptied.
func (f *follower) turn() {
	now, err := os.Stat(f.path)
	if err != nil {
		return
	}
	mine, err := f.file.Stat()
	if err != nil {
		return
	}
	if !os.SameFile(now, mine) {
		if next, err := os.Open(f.path); err == nil {
			f.file.Close()
			f.file = next
		}
		return
	}
	if at, err := f.file.Seek(0, io.SeekCurrent); err == nil && mine.Size() < at {
		_, _ = f.file.Seek(0, io.SeekStart) // the next read says what is wrong
	}
}

// Close closes the file.
func (f *follower) Close() error { return f.file.Close() }
