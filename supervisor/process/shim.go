package process

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"roundhouse/worker/device"
)

// lockFD is where a child finds its lock.
const lockFD = 3

// Shim is the child's first half: it takes its place and executes argv with
// the environment env. It returns only when something failed.
func Shim(args, env []string) error {
	flags := flag.NewFlagSet("shim", flag.ContinueOnError)
	cpus := flags.String("cpus", "", "")
	mems := flags.String("mems", "", "")
	uid := flags.Int("uid", -1, "")
	gid := flags.Int("gid", -1, "")
	nofile := flags.Uint64("nofile", 0, "")
	confined := flags.Bool("no-new-privs", false, "")
	var limits []limit
	flags.Func("limit", "", func(text string) error {
		l, err := parseLimit(text)
		limits = append(limits, l)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	argv := flags.Args()
	if len(argv) == 0 {
		return fmt.Errorf("shim: no program")
	}
	// Affinity, memory policy and rights belong to a thread; the one that
	// executes is the one that stays.
	runtime.LockOSThread()
	if err := pin(*cpus, *mems); err != nil {
		return err
	}
	raiseFiles(*nofile)
	for _, l := range limits {
		l.set()
	}
	program, err := os.Open(argv[0])
	if err != nil {
		return err
	}
	if err := writeLockOwner(); err != nil {
		return err
	}
	if *confined {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("cannot give up new rights: %w", err)
		}
	}
	if *uid >= 0 {
		if err := become(*uid, *gid); err != nil {
			return err
		}
	}
	if *uid < 0 {
		// Under its whole name: by it Python finds the environment that it belongs to.
		err = syscall.Exec(argv[0], argv, env)
	} else {
		// By descriptor, since the new user may not be let into the program's folder.
		err = syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", program.Fd()), append([]string{filepath.Base(argv[0])}, argv[1:]...), env)
	}
	return fmt.Errorf("cannot execute %s: %w", argv[0], err)
}

func writeLockOwner() error {
	ticks, err := beginTicks(os.Getpid())
	if err != nil {
		return err
	}
	if err := unix.Ftruncate(lockFD, 0); err != nil {
		return fmt.Errorf("cannot write the lock: %w", err)
	}
	_, err = unix.Pwrite(lockFD, []byte(lockOwner{os.Getpid(), ticks}.String()), 0)
	return err
}

// pin puts this thread, and so the program that it executes, on the given CPUs
// and memory nodes. What the machine does not allow is said and left out.
func pin(cpus, mems string) error {
	list, err := device.ParseList(cpus)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		var set unix.CPUSet
		for _, c := range list {
			set.Set(c)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			fmt.Fprintf(os.Stderr, "cannot run on CPUs %s alone: %v; it runs on any\n", cpus, err)
		}
	}
	nodes, err := device.ParseList(mems)
	if err != nil || len(nodes) == 0 {
		return err
	}
	mask := make([]uint64, nodes[len(nodes)-1]/64+1)
	for _, n := range nodes {
		mask[n/64] |= 1 << (n % 64)
	}
	const bind = 2 // MPOL_BIND
	_, _, errno := unix.Syscall(unix.SYS_SET_MEMPOLICY, bind, reflect.ValueOf(mask).Pointer(), uintptr(len(mask)*64+1))
	runtime.KeepAlive(mask)
	if errno != 0 {
		fmt.Fprintf(os.Stderr, "cannot take memory from nodes %s alone: %v; it comes from any\n", mems, errno)
	}
	return nil
}

// raiseFiles lifts the limit of open files as far as it may go, to n at most.
func raiseFiles(n uint64) {
	var limit unix.Rlimit
	if n == 0 || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur >= n {
		return
	}
	limit.Cur = min(n, limit.Max)
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) // less is said by doctor
}

// become drops all groups and takes another user's rights, for good.
func become(uid, gid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("cannot drop groups: %w", err)
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return fmt.Errorf("cannot become group %d: %w", gid, err)
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("cannot become user %d: %w", uid, err)
	}
	return nil
}
