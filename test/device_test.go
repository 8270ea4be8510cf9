//go:build pocl

package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gpuHouse is a machine with one GPU, made for one test: what sysfs and /dev show of it are
// folders of the test's own, and its OpenCL is PoCL's in the clothes of a GPU, which
// fails as the file fault says.
type gpuHouse struct {
	dir, fault string
	env        string // of the engine, as HCL
}

func newGPUHouse(t *testing.T) gpuHouse {
	t.Helper()
	real, _ := filepath.Glob("/usr/lib/*/libOpenCL.so.1")
	if len(real) == 0 {
		t.Skip("no OpenCL library; for tests the packages ocl-icd-libopencl1 and pocl-opencl-icd are enough")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may put a GPU into a machine")
	}
	dir := t.TempDir()
	h := gpuHouse{dir: dir, fault: filepath.Join(dir, "fault")}
	if log, err := exec.Command("gcc", "-shared", "-fPIC", "-o", filepath.Join(dir, "libOpenCL.so.1"), "../cmd/roundhouse-worker/testdata/opencl.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, log)
	}
	gpu := "pci/0000:18:00.0/"
	for name, text := range map[string]string{
		gpu + "vendor": "0x8086", gpu + "class": "0x030000", gpu + "device": "0xe211", gpu + "numa_node": "-1", gpu + "drm/renderD128/dev": "226:128",
		gpu + "hwmon/hwmon3/temp2_label": "pkg", gpu + "hwmon/hwmon3/temp2_input": "51000", gpu + "tile0/gt0/freq0/act_freq": "2400", "fault": "",
	} {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text+"\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../drivers/xe", filepath.Join(dir, gpu, "driver")); err != nil {
		t.Fatal(err)
	}
	h.env = fmt.Sprintf("{ LD_LIBRARY_PATH = %q, OPENCL = %q, FAULT = %q, XDG_CACHE_HOME = %q, ROUNDHOUSE_CACHE = \"off\" }", dir, real[0], h.fault, filepath.Join(dir, "cache"))
	return h
}

// fails says what fails from now on; empty: nothing.
func (h gpuHouse) fails(t *testing.T, how string) {
	t.Helper()
	if err := os.WriteFile(h.fault+".new", []byte(how), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(h.fault+".new", h.fault); err != nil {
		t.Fatal(err)
	}
}

// inside is a command that sees the GPU: in mounts of its own, devices and the bus are
// those of the house.
func (h gpuHouse) inside(args ...string) *exec.Cmd {
	script := `set -e
mount -t tmpfs none "$0/dev"
for n in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "$0/dev/${n%%:*}" c 1 "${n##*:}"; done
mkdir "$0/dev/dri" "$0/dev/shm"
: > "$0/dev/dri/renderD128"
mount --bind "$0/pci" /sys/bus/pci/devices
mount --move "$0/dev" /dev
exec "$@"`
	return exec.Command("unshare", append([]string{"-m", "--propagation", "private", "sh", "-c", script, h.dir}, args...)...)
}

// A supervisor gives a GPU to its worker. A GPU that gives no more memory costs nothing; a
// worker whose GPU is lost under a request is replaced, and answers it and those after it.
func TestGPUIsLostXPU(t *testing.T) {
	h := newGPUHouse(t)
	if err := os.Mkdir(filepath.Join(h.dir, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	path, door, admin := writeConfig(t, fmt.Sprintf(`
pool "chat" {
  driver  = "process"
  workers = 1
  engine {
    served_model_name = ["roundhouse-demo"]
    max_model_len     = 512
    args              = ["--max-num-seqs", "2", "--max-num-batched-tokens", "64", "--num-gpu-blocks-override", "64"]
    environment       = %s
  }
}
`, h.env))
	s := &system{t: t, out: newOutput(), Door: "http://" + door, Admin: "http://" + admin}
	s.cmd = h.inside(built.Path(t, "roundhouse"), "up", "-c", path)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	s.waitReady()

	first := s.known()[0]
	var list struct {
		Workers []struct {
			URL   string
			Place struct{ GPUs []string }
		}
	}
	if err := json.Unmarshal([]byte(fetch(t, s.Admin+"/api/workers")), &list); err != nil || len(list.Workers) != 1 || len(list.Workers[0].Place.GPUs) != 1 || list.Workers[0].Place.GPUs[0] != "0000:18:00.0" {
		t.Fatalf("the workers are %+v, %v; want one with the GPU", list, err)
	}
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", first.Place.PID)); err != nil || !strings.Contains(string(line), "--device\x00xpu:0000:18:00.0\x00") {
		t.Errorf("the worker runs as %q, %v", strings.ReplaceAll(string(line), "\x00", " "), err)
	}
	if text := fetch(t, list.Workers[0].URL+"/metrics"); !strings.Contains(text, `roundhouse_device_info{device="made-up GPU",pci="0000:18:00.0"`) ||
		!strings.Contains(text, `roundhouse_device_temperature_celsius{device="made-up GPU",pci="0000:18:00.0"} 51.0`) ||
		!strings.Contains(text, `roundhouse_device_frequency_hertz{device="made-up GPU",pci="0000:18:00.0"} 2400000000.0`) {
		t.Errorf("the metrics lack the device:\n%s", text)
	}
	body := `{"model":"roundhouse-demo","prompt":%q,"max_tokens":4,"temperature":0}`
	ask := func(prompt string) (int, string) { return post(t, s.Door+"/v1/completions", fmt.Sprintf(body, prompt)) }
	if status, text := ask("two and two"); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	// A longer context than any before wants no more memory: the worker took it all before.
	long := strings.Repeat("word ", 150)
	h.fails(t, "memory")
	if status, text := ask(long); status != http.StatusOK {
		t.Errorf("without more memory: status %d: %s", status, text)
	}
	if ws := s.workers(); len(ws) != 1 || ws[0].Place.PID != first.Place.PID {
		t.Errorf("without more memory the workers are %+v; want process %d still", ws, first.Place.PID)
	}

	// The request that met the lost device waits for the worker's successor.
	h.fails(t, "lost")
	answer := make(chan string, 1)
	go func() {
		status, text := ask(long)
		answer <- fmt.Sprint(status, " ", text)
	}()
	poll(t, "the worker has ended", func() bool {
		ws := s.workers()
		return len(ws) == 1 && ws[0].Place.PID != first.Place.PID
	}, func() string { return s.out.String() })
	h.fails(t, "")
	s.waitReady()
	if got := <-answer; !strings.HasPrefix(got, "200 ") {
		t.Errorf("lost: %s", got)
	}
	next := s.known()[0]
	if next.Generation <= first.Generation || next.Place.PID == first.Place.PID {
		t.Errorf("generation %d after %d", next.Generation, first.Generation)
	}
	if status, text := ask("two and two"); status != http.StatusOK {
		t.Errorf("its successor answers %d: %s", status, text)
	}
}

// fetch is what a URL answers.
func fetch(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
