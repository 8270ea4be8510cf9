package campaign

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/test/system"
)

// disk is a small file system of a system's own, for its state folder.
type disk struct {
	t     *testing.T
	image string // a file that holds it; none: it is in memory, and cannot break
	at    string
}

// newDisk makes a disk; none if this machine lets nobody mount. One that can break is a
// file system of the kind that most machines have, on a loop device.
func newDisk(t *testing.T, breaks bool) *disk {
	if os.Geteuid() != 0 {
		t.Log("no small disk without root: it will not be full, read-only or broken")
		return nil
	}
	d := &disk{t: t}
	if !breaks {
		return d
	}
	image := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 64<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", image).CombinedOutput(); err != nil {
		t.Logf("no disk that breaks: mkfs.ext4: %v %s", err, out)
		return d
	}
	d.image = image
	return d
}

// mount puts the disk at a folder, until the test ends.
func (d *disk) mount(at string) {
	d.at = at
	if d.image == "" {
		if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=64m"); err != nil {
			d.t.Fatal(err)
		}
	} else {
		d.attach()
	}
	if err := os.Chmod(at, 0o700); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			d.t.Error(err)
		}
	})
}

func (d *disk) attach() {
	if out, err := exec.Command("mount", "-o", "loop,errors=remount-ro", d.image, d.at).CombinedOutput(); err != nil {
		d.t.Fatalf("mount: %v %s", err, out)
	}
}

// fail makes the kernel find an error in the file system: from then on it takes no
// writes, also to files that are open.
func (d *disk) fail() {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		d.t.Error(err)
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) > 1 && f[1] == d.at {
			if err := os.WriteFile("/sys/fs/ext4/"+filepath.Base(f[0])+"/trigger_fs_error", []byte("1"), 0); err != nil {
				d.t.Error(err)
			}
			return
		}
	}
	d.t.Errorf("%s is not mounted", d.at)
}

// used reports whether the image is on a loop device. Whoever begins a container has a
// copy of every mount for a moment.
func (d *disk) used() bool {
	list, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	return err == nil && slices.ContainsFunc(list, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && strings.TrimSpace(string(text)) == d.image
	})
}

// repair is what an operator does with a disk that broke, once nobody uses it.
func (s *trial) repair() {
	s.t.Helper()
	var err error = unix.EBUSY
	for late := time.Now().Add(system.Patience); err != nil || s.disk.used(); { // those that were killed are still closing their files
		if err != nil {
			err = unix.Unmount(s.disk.at, 0)
		}
		if err != nil && !errors.Is(err, unix.EBUSY) || time.Now().After(late) {
			s.t.Fatalf("the disk cannot be repaired: %v", err)
		}
		<-time.After(10 * time.Millisecond)
	}
	out, err := exec.Command("fsck.ext4", "-f", "-y", s.disk.image).CombinedOutput()
	if e := new(exec.ExitError); err != nil && (!errors.As(err, &e) || e.ExitCode() > 1) { // 1: repaired
		s.t.Fatalf("fsck.ext4: %v %s", err, out)
	}
	s.disk.attach()
	if err := os.Remove(s.filler()); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Error(err) // it comes back if the disk broke before its removal was written
	}
}

// diskBreaks lets the disk under the state folder take no more writes, to open files
// neither. The door and the workers that there are serve, and the supervisor lives;
// then the machine is started anew, with a disk that was repaired.
func diskBreaks(s *trial) {
	s.disk.fail()
	since := s.c.whole.Load()
	s.Until("answers come while nothing can be written", func() bool { return s.c.whole.Load() > since+10 })
	s.allDown(s.repair)
}

// diskFull fills the disk that the state folder is on, and kills a worker meanwhile.
func diskFull(s *trial) {
	f, err := os.Create(s.filler())
	if err != nil {
		s.t.Errorf("filling the disk: %v", err)
		return
	}
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		s.t.Errorf("filling the disk: %v", err)
	}
	f.Close()
	s.signal(syscall.SIGKILL)
	<-time.After(time.Second)
	if err := os.Remove(s.filler()); err != nil {
		s.t.Error(err)
	}
}

// filler is the file that fills a disk.
func (s *trial) filler() string { return filepath.Join(s.State, "filler") }

// readOnly covers the state folder with a view of itself that takes no writes, as after
// a remount; descriptors that are open go on. A worker is killed meanwhile, and the
// supervisor: its successor has to refuse the folder, while the door and the workers
// that there are serve.
func readOnly(s *trial) {
	err := unix.Mount(s.State, s.State, "", unix.MS_BIND, "")
	if err == nil {
		err = unix.Mount("", s.State, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}
	if err != nil {
		s.t.Errorf("a state folder that is read-only: %v", err)
		return
	}
	s.signal(syscall.SIGKILL)
	<-time.After(time.Second)
	s.Kill()
	if said, err := s.Attempt(); err == nil || !strings.Contains(said, s.State) {
		s.t.Errorf("up on a state folder that is read-only: %v; it said %s", err, said)
	}
	since := s.c.whole.Load()
	s.Until("answers come without a supervisor", func() bool { return s.c.whole.Load() > since })
	if err := unix.Unmount(s.State, unix.MNT_DETACH); err != nil {
		s.t.Error(err)
	}
	s.Up()
}
