//go:build pocl

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is the worker itself where a test asks for it, after what the test wants done
// to the process first.
func TestMain(m *testing.M) {
	args, asked := os.LookupEnv("WORKER")
	if !asked {
		os.Exit(m.Run())
	}
	if err := pretend(os.Getenv("DRI"), os.Getenv("PCI"), os.Getenv("NODES")); err != nil {
		panic(err)
	}
	if os.Getenv("NOBODY") != "" {
		if err := syscall.Setuid(65534); err != nil {
			panic(err)
		}
	}
	os.Exit(run(strings.Fields(args), os.Stdout, os.Stderr))
}

// pretend puts folders in the places of /dev/dri, of the PCI devices and of the memory
// nodes, in the mounts of this process alone.
func pretend(dri, pci, nodes string) error {
	if _, err := os.Stat("/dev/dri/pretended"); err == nil {
		return nil // the worker has executed itself anew
	}
	if nodes != "" {
		if err := syscall.Mount(nodes, "/sys/devices/system/node", "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	if dri != "" {
		if err := syscall.Mount("none", "/dev", "tmpfs", 0, ""); err != nil {
			return err
		}
		if err := os.Mkdir("/dev/dri", 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(dri, "/dev/dri", "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	if pci != "" {
		return syscall.Mount(pci, "/sys/bus/pci/devices", "", syscall.MS_BIND, "")
	}
	return nil
}

// house is what the workers of one test share.
type house struct {
	t     *testing.T
	fault string   // file that says what fails
	env   []string // with the library that shows GPUs
}

func newHouse(t *testing.T) *house {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/*/libOpenCL.so.1")
	if len(found) == 0 {
		t.Skip("no OpenCL library; for tests the packages ocl-icd-libopencl1 and pocl-opencl-icd are enough")
	}
	dir := t.TempDir()
	if log, err := exec.Command("gcc", "-shared", "-fPIC", "-o", filepath.Join(dir, "libOpenCL.so.1"), "testdata/opencl.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, log)
	}
	h := &house{t: t, fault: filepath.Join(dir, "fault")}
	h.env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, "OPENCL="+found[0], "FAULT="+h.fault, "ROUNDHOUSE_CACHE=off",
		"XDG_CACHE_HOME="+t.TempDir(), "ZE_AFFINITY_MASK=", "ONEAPI_DEVICE_SELECTOR=")
	return h
}

// fails says what fails from now on.
func (h *house) fails(how string) {
	h.t.Helper()
	if err := os.WriteFile(h.fault, []byte(how), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// command is the worker with its arguments, and settings beside the house's.
func (h *house) command(args string, env ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(append(append([]string{}, h.env...), "WORKER="+args), env...)
	for _, e := range env {
		if strings.HasPrefix(e, "DRI=") {
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		}
	}
	return cmd
}

// dies runs a worker that cannot start: exit code 1, and one sentence that says all.
func (h *house) dies(name string, cmd *exec.Cmd, want ...string) (log string) {
	h.t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	ended := make(chan error, 1)
	if err := cmd.Start(); err != nil {
		h.t.Fatalf("%s: %v", name, err)
	}
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		_ = cmd.Process.Kill()
		h.t.Fatalf("%s: it still runs\n%s", name, stderr.String())
	}
	h.said(name, cmd, stderr.String(), want...)
	return stderr.String()
}

// said holds what a worker left to what it should have: exit code 1 and, as its last line
// but for a compiler's own, a sentence with all that is wanted.
func (h *house) said(name string, cmd *exec.Cmd, stderr string, want ...string) {
	h.t.Helper()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		h.t.Errorf("%s: exit code %d; want 1", name, code)
	}
	at := strings.LastIndex(stderr, "roundhouse-worker: ")
	if at < 0 {
		h.t.Fatalf("%s: it says %q", name, stderr)
	}
	sentence, rest, _ := strings.Cut(stderr[at:], "\n")
	for _, w := range want {
		if !strings.Contains(sentence, w) {
			h.t.Errorf("%s: it says\n%s\nwant %q", name, stderr[at:], w)
		}
	}
	if strings.Contains(stderr, "goroutine ") || strings.Count(rest, "\n") > 1 {
		h.t.Errorf("%s: it says more than a sentence:\n%s", name, stderr)
	}
}

const serves = "serve --port 0 --host 127.0.0.1 --max-model-len 512 --max-num-seqs 2 --max-num-batched-tokens 64 --num-gpu-blocks-override 64 --device "

// Everything that can be wrong with a GPU before a worker serves.
func TestNoDevice(t *testing.T) {
	h := newHouse(t)
	broken := t.TempDir()
	for _, name := range []string{"libOpenCL.so.1", "libOpenCL.so"} {
		if err := os.WriteFile(filepath.Join(broken, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h.dies("no library", h.command(serves+"xpu", "LD_LIBRARY_PATH="+broken), "--device xpu: no OpenCL library", "install the package ocl-icd-libopencl1")
	h.dies("no driver", h.command(serves+"xpu", "LD_LIBRARY_PATH=", "OCL_ICD_VENDORS="+t.TempDir()), "--device xpu: no OpenCL driver offers a GPU")
	h.dies("no GPU", h.command(serves+"xpu", "LD_LIBRARY_PATH="), "--device xpu: no OpenCL driver offers a GPU", "is it passed to this container?")
	h.dies("a wrong address", h.command(serves+"xpu:0000:99:00.0"), "there is no GPU 0000:99:00.0; there are 0: 0000:18:00.0 (made-up GPU)")
	h.dies("a wrong number", h.command(serves+"xpu:3"), "there is no GPU number 3; there are 0: 0000:18:00.0")
	h.dies("a mask", h.command(serves+"xpu", "ZE_AFFINITY_MASK=2"), `ZE_AFFINITY_MASK="2"`, "hide every GPU; there are 0: 0000:18:00.0")
	h.dies("a selector", h.command(serves+"xpu", "ONEAPI_DEVICE_SELECTOR=opencl:gpu:1"), `ONEAPI_DEVICE_SELECTOR="opencl:gpu:1"`, "hide every GPU")
	h.dies("too little memory", h.command(serves+"xpu --gpu-memory-utilization 0.0001"), "MiB of made-up GPU")
	h.dies("less memory than is said", h.command(serves+"xpu --device-memory-bytes 1000000"), "MiB of made-up GPU")
	h.fails("memory")
	h.dies("no memory", h.command(serves+"xpu"), "made-up GPU", "the device is out of memory (-4)")
	h.fails("build")
	log := h.dies("a driver that does not build", h.command(serves+"xpu"), "kernels ", "made-up GPU does not build the kernels", "another version of the GPU's driver")
	if !strings.HasSuffix(log, "\nan internal error of the compiler\n") {
		t.Errorf("the compiler's own words are not there: %s", log)
	}
}

// What takes a machine of one's own: render nodes that may not be opened, two workers on
// one GPU, and two memory nodes, of which the GPU is beside one.
func TestRenderNodes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may put a render node into a machine")
	}
	h := newHouse(t)
	dri, pci, nodes := t.TempDir(), t.TempDir(), t.TempDir()
	gpu := filepath.Join(pci, "0000:18:00.0")
	for name, text := range map[string]string{
		dri + "/renderD128": "", dri + "/pretended": "",
		gpu + "/vendor": "0x8086", gpu + "/class": "0x030000", gpu + "/device": "0xe211", gpu + "/numa_node": "0", gpu + "/drm/renderD128/dev": "226:128",
		nodes + "/node0/cpulist": "1", nodes + "/node0/meminfo": "Node 0 MemTotal: 1000 kB",
		nodes + "/node1/cpulist": "0", nodes + "/node1/meminfo": "Node 1 MemTotal: 1000 kB",
	} {
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.WriteFile(name, []byte(text+"\n"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../drivers/xe", filepath.Join(gpu, "driver")); err != nil {
		t.Fatal(err)
	}
	h.dies("no permission", h.command(serves+"xpu", "LD_LIBRARY_PATH=", "DRI="+dri, "NOBODY=1"), "/dev/dri/renderD128 may not be opened: add this user to the group that owns it (render)")
	h.dies("no driver of this GPU", h.command(serves+"xpu", "LD_LIBRARY_PATH=", "DRI="+dri), "/dev/dri/renderD128 is there, but no OpenCL driver offers a GPU; install the driver, on Debian intel-opencl-icd")

	first := h.starts(serves+"xpu", "DRI="+dri, "PCI="+pci)
	h.dies("two workers on one GPU", h.command(serves+"xpu:18:00.0", "DRI="+dri, "PCI="+pci), "computes on 0000:18:00.0 already, and a worker takes a whole GPU")
	first.stop()
	env := []string{"DRI=" + dri, "PCI=" + pci}
	if runtime.NumCPU() > 1 {
		env = append(env, "NODES="+nodes)
	}
	next := h.starts(serves+"xpu:18:00.0", env...) // what ended has let go
	if runtime.NumCPU() > 1 {
		next.beside()
	}
	next.stop()
}

// beside checks that a worker has executed itself anew on processor 1, beside its GPU,
// with memory of node 0, and that it answers there.
func (w *running) beside() {
	t := w.h.t
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", w.cmd.Process.Pid)
	if status, err := os.ReadFile(proc + "status"); err != nil || !strings.Contains(string(status), "\nCpus_allowed_list:\t1\n") {
		t.Errorf("it runs on other processors than 1: %v\n%s", err, status)
	}
	if maps, err := os.ReadFile(proc + "numa_maps"); err == nil && !strings.Contains(string(maps), " prefer:0 ") && !strings.Contains(string(maps), " prefer=relative:0 ") {
		t.Errorf("it does not prefer memory of node 0: %.300s", maps)
	}
	if status, text := w.asks(`{"prompt":"two and two","max_tokens":4}`); status != http.StatusOK {
		t.Errorf("status %d: %s", status, text)
	}
	if !strings.Contains(w.stderr.String(), "placing the worker") {
		t.Errorf("it does not say that it places itself:\n%s", w.stderr.String())
	}
}

// A device that is lost ends the worker with a sentence. One that gives no more memory
// costs nothing: a worker takes all of it before it serves, so that a longer prompt than
// any before is answered.
func TestDeviceFails(t *testing.T) {
	h := newHouse(t)
	short, long := `{"prompt":"two and two","max_tokens":4}`, fmt.Sprintf(`{"prompt":%q,"max_tokens":4}`, strings.Repeat("word ", 150))
	h.fails("")
	w := h.starts(serves + "xpu:0000:18:00.0")
	ask := func(when, body string) {
		t.Helper()
		if status, text := w.asks(body); status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", when, status, text)
		}
	}
	ask("before", short)
	h.fails("memory")
	ask("without more memory", long)
	h.fails("lost")
	if status, text := w.asks(short); status < 500 || !strings.Contains(text, `"error"`) {
		t.Errorf("lost: status %d, %s; want an error of the server", status, text)
	}
	w.ended()
	h.said("lost", w.cmd, w.stderr.String(), "the backend failed: ", "invalid command queue: the device was lost (-36)")
}

// running is a worker that serves.
type running struct {
	h      *house
	cmd    *exec.Cmd
	url    string
	stderr bytes.Buffer
	done   chan struct{}
}

var address = regexp.MustCompile(`msg=ready .*address=(\S+)`)

// starts runs a worker and waits until it serves.
func (h *house) starts(args string, env ...string) *running {
	h.t.Helper()
	w := &running{h: h, cmd: h.command(args, env...), done: make(chan struct{})}
	out, err := w.cmd.StderrPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	ready := make(chan string, 1)
	go func() {
		defer close(w.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(&w.stderr, lines.Text())
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				ready <- m[1]
			}
		}
		_ = w.cmd.Wait()
	}()
	select {
	case at := <-ready:
		w.url = "http://" + at
	case <-w.done:
		h.t.Fatalf("the worker ended:\n%s", w.stderr.String())
	}
	return w
}

func (w *running) asks(body string) (status int, text string) {
	w.h.t.Helper()
	resp, err := http.Post(w.url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		w.h.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.h.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// ended waits until the worker has ended by itself.
func (w *running) ended() {
	w.h.t.Helper()
	select {
	case <-w.done:
	case <-time.After(time.Minute):
		w.h.t.Fatal("the worker still runs")
	}
}

func (w *running) stop() {
	w.h.t.Helper()
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	w.ended()
}
