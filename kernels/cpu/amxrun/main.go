//go:build linux && amd64

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "amxrun PROGRAM ARGUMENTS…")
		os.Exit(2)
	}
	code, err := run(os.Args[1], os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "amxrun:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run starts a program, traces all its threads and returns its exit status.
func run(name string, args []string) (int, error) {
	runtime.LockOSThread() // only the thread that traces may speak to the traced
	path, err := exec.LookPath(name)
	if err != nil {
		return 0, err
	}
	process, err := os.StartProcess(path, args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		return 0, fmt.Errorf("cannot trace %s: %w", path, err)
	}
	t := tracer{process: process.Pid, threads: map[int]*tiles{}}
	for {
		var status unix.WaitStatus
		thread, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("cannot wait for %s: %w", path, err)
		case status.Exited() && thread == t.process:
			return status.ExitStatus(), nil
		case status.Signaled() && thread == t.process:
			return 128 + int(status.Signal()), nil
		case status.Stopped():
			if err := t.stopped(thread, status); err != nil {
				return 0, err
			}
		default: // the end of a thread
			delete(t.threads, thread)
		}
	}
}

// tracer is a traced process.
type tracer struct {
	process int
	threads map[int]*tiles
}

// stopped lets a stopped thread go on.
func (t *tracer) stopped(thread int, status unix.WaitStatus) error {
	pass := int(status.StopSignal())
	state, known := t.threads[thread]
	switch {
	case !known: // the first stop of the process, or of a thread that it made
		t.threads[thread], pass = &tiles{}, 0
		if thread == t.process {
			if err := unix.PtraceSetOptions(thread, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
				return fmt.Errorf("cannot trace threads: %w", err)
			}
		}
	case status.TrapCause() > 0: // news of a new thread
		pass = 0
	case status.StopSignal() == unix.SIGILL:
		done, err := t.emulate(thread, state)
		if err != nil {
			return err
		}
		if done {
			pass = 0
		}
	}
	if err := unix.PtraceCont(thread, pass); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot continue thread %d: %w", thread, err)
	}
	return nil
}

// emulate runs the instructions of AMX at which a thread stands, if any.
func (t *tracer) emulate(thread int, state *tiles) (done bool, err error) {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(thread, &regs); err != nil {
		return false, fmt.Errorf("cannot read the registers of thread %d: %w", thread, err)
	}
	m := process(t.process)
	for ; ; done = true {
		var code [8]byte
		if err := m.read(regs.Rip, code[:]); err != nil {
			return false, err
		}
		i, err := decode(code[:])
		if errors.Is(err, errOther) {
			break
		}
		if err == nil {
			err = i.run(state, m, func(n int) uint64 { return *register(&regs, n) })
		}
		if err != nil {
			return false, fmt.Errorf("at %#x: %w", regs.Rip, err)
		}
		regs.Rip += uint64(i.length)
	}
	if !done {
		return false, nil
	}
	return true, unix.PtraceSetRegs(thread, &regs)
}

// register is a general register by its number in instructions.
func register(r *unix.PtraceRegs, n int) *uint64 {
	return [16]*uint64{&r.Rax, &r.Rcx, &r.Rdx, &r.Rbx, &r.Rsp, &r.Rbp, &r.Rsi, &r.Rdi,
		&r.R8, &r.R9, &r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15}[n]
}

// process is the memory of a process.
type process int

func (p process) read(address uint64, b []byte) error {
	n, err := unix.ProcessVMReadv(int(p), local(b), []unix.RemoteIovec{{Base: uintptr(address), Len: len(b)}}, 0)
	return p.whole("read", address, n, len(b), err)
}

func (p process) write(address uint64, b []byte) error {
	n, err := unix.ProcessVMWritev(int(p), local(b), []unix.RemoteIovec{{Base: uintptr(address), Len: len(b)}}, 0)
	return p.whole("write", address, n, len(b), err)
}

func local(b []byte) []unix.Iovec {
	v := []unix.Iovec{{Base: &b[0]}}
	v[0].SetLen(len(b))
	return v
}

func (p process) whole(verb string, address uint64, n, size int, err error) error {
	if err == nil && n < size {
		err = fmt.Errorf("%d bytes only", n)
	}
	if err != nil {
		return fmt.Errorf("cannot %s %d bytes at %#x: %w", verb, size, address, err)
	}
	return nil
}
