package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a worker said last when its GPU could not be had, doctor repeats, with what to do.
// The sentences are those that the worker's own tests hold it to (TestNoDevice,
// TestRenderNodes, TestDeviceFails).
func TestRemedies(t *testing.T) {
	said := ""
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/workers/chat/1/logs" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "level=INFO msg=starting\n%s\n", said)
	}))
	defer api.Close()
	d := &doctor{console: &console{env: func(string) (string, bool) { return "", false }}, client: &client{base: api.URL, where: api.URL, http: api.Client()}}
	var worker workerAnswer
	worker.ID, worker.Pool, worker.Name = "chat/1", "chat", "1"
	f := func(sentence, remedy string) {
		t.Helper()
		said = "roundhouse-worker: " + sentence
		why, action := d.failure(context.Background(), worker)
		if !strings.Contains(why, strings.Split(sentence, "\n")[0]) || !strings.Contains(action, remedy) {
			t.Errorf("%s: doctor says %q → %q; want %q", sentence, why, action, remedy)
		}
	}
	f("--device xpu: no OpenCL library (libOpenCL.so.1) can be opened; install the package ocl-icd-libopencl1 and the driver of your GPU", "install ocl-icd-libopencl1")
	f("--device xpu: /dev/dri/renderD128 may not be opened: add this user to the group that owns it (render), or pass the device to the container with its group", "usermod -aG render")
	f("--device xpu: no OpenCL driver offers a GPU, and /dev/dri has no render node: is there a GPU, and is it passed to this container?", "or pass the device to the container")
	f("--device xpu: /dev/dri/renderD128 is there, but no OpenCL driver offers a GPU; install the driver, on Debian intel-opencl-icd", "intel-opencl-icd")
	f(`--device xpu: /dev/dri/renderD128 is there, but no OpenCL driver offers a GPU: ZE_AFFINITY_MASK="3" hides all others from Intel's driver, or the driver is not installed`, "unset ZE_AFFINITY_MASK")
	f(`--device xpu: ZE_AFFINITY_MASK="2" and ONEAPI_DEVICE_SELECTOR="" hide every GPU; there are 0: 0000:18:00.0 (Arc A770)`, "unset ZE_AFFINITY_MASK")
	f("--device xpu:0000:99:00.0: there is no GPU 0000:99:00.0; there are 0: 0000:18:00.0 (Arc A770)", "mend gpus in the worker's block")
	f("--device xpu: another worker (process 4711) computes on 0000:18:00.0 already, and a worker takes a whole GPU: give this one another, or stop that one", "name each device in one worker alone")
	f("kernels sample: Arc A770 does not build the kernels with \"-cl-std=CL2.0\": clBuildProgram: the program did not build (-11); another version of the GPU's driver may\nan internal error of the compiler", "install another version of the GPU's driver")
	f("the backend failed: clEnqueueNDRangeKernel: invalid command queue: the device was lost (-36)", "dmesg says why")
	f("the backend failed: clCreateBuffer: the device is out of memory (-4)", "lower --gpu-memory-utilization")
	f("weight lm_head as bfloat16: 600 MiB more do not fit: 15000 of 15500 MiB of Arc A770 are taken", "lower max_model_len")
	f("something else", "roundhouse logs chat/1")
}
