package pagecache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoRoom is returned when the files are more than the memory that is free
// for them; nothing is read then, since what came last would push out what
// came first.
var ErrNoRoom = errors.New("more than the page cache has room for")

// Read reads the regular files below path, or the one that path is, and
// returns how many bytes they have. room is what may be read at most.
func Read(ctx context.Context, path string, room int64) (int64, error) {
	var files []string
	var total int64
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(name) // models are often links into a store of files
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		files, total = append(files, name), total+info.Size()
		return ctx.Err()
	})
	if err != nil {
		return 0, err
	}
	if total > room {
		return 0, fmt.Errorf("%s has %d MiB, %d MiB are free: %w", path, total>>20, room>>20, ErrNoRoom)
	}
	buf := make([]byte, 1<<20)
	for _, name := range files {
		if err := readFile(ctx, name, buf); err != nil {
			return 0, err
		}
	}
	return total, nil
}

func readFile(ctx context.Context, name string, buf []byte) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	// The kernel reads ahead of us as far as it likes; where it knows no advice
	// the reading alone does it.
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_SEQUENTIAL)
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_WILLNEED)
	for ctx.Err() == nil {
		if _, err := f.Read(buf); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Room is how much the machine can cache without taking memory from anybody,
// by the kernel's own estimate, less a tenth.
func Room(proc string) (int64, error) {
	f, err := os.Open(filepath.Join(proc, "meminfo"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
			return kb << 10 / 10 * 9, err
		}
	}
	return 0, errors.New("meminfo does not say what is available")
}
