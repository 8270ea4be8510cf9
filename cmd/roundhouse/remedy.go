package main

import (
	"context"
	"strings"
)

// remedies are what to do about the last sentence of a worker of ours that ended. The
// first that fits counts.
var remedies = []struct{ said, action string }{
	{"no OpenCL library", "install ocl-icd-libopencl1 and the GPU's driver (Debian, Ubuntu: intel-opencl-icd)"},
	{"may not be opened", "let its user into the group render: usermod -aG render USER; for a container, pass the device with its group"},
	{"hides all others from Intel's driver", "unset ZE_AFFINITY_MASK: each worker has its own GPU by address; else install the GPU's driver (Debian, Ubuntu: intel-opencl-icd)"},
	{"no OpenCL driver offers a GPU", "install the GPU's driver (Debian, Ubuntu: intel-opencl-icd), or pass the device to the container"},
	{"hide every GPU", "unset ZE_AFFINITY_MASK and ONEAPI_DEVICE_SELECTOR: each worker has its own GPU by address"},
	{"there is no GPU", "the GPUs that are there are listed below; mend gpus in the worker's block"},
	{"computes on ", "name each device in one worker alone, or end the process that is named"},
	{"does not build the kernels", "install another version of the GPU's driver (Debian, Ubuntu: intel-opencl-icd); the compiler's words are in the worker's log"},
	{"the device was lost", "dmesg says why; a worker whose GPU is lost again and again needs another GPU, or a newer driver"},
	{"out of memory", "lower --gpu-memory-utilization or max_model_len, or quantise the model; `roundhouse doctor` says who else holds the GPU's memory"},
	{"more do not fit", "lower max_model_len, quantise the model, or raise --gpu-memory-utilization"},
}

// failure says why a worker has failed, with its own last sentence where its log has one,
// and what to do.
func (d *doctor) failure(ctx context.Context, w workerAnswer) (why, action string) {
	why, action = orDash(w.LastError), "`roundhouse logs "+w.ID+"`; then `roundhouse start "+w.ID+"`"
	sentence := lastSentence(string(d.fetch(ctx, "/api/workers"+escaped(w.Pool, w.Name)+"/logs?tail=50")))
	if sentence == "" {
		return why, action
	}
	for _, r := range remedies {
		if strings.Contains(sentence, r.said) {
			return why + ": " + sentence, r.action + "; then `roundhouse start " + w.ID + "`"
		}
	}
	return why + ": " + sentence, action
}

// lastSentence is what a worker of ours said when it ended; empty where a log has nothing
// of that kind.
func lastSentence(log string) string {
	const begins = "roundhouse-worker: "
	at := strings.LastIndex("\n"+log, "\n"+begins)
	if at < 0 {
		return ""
	}
	sentence, _, _ := strings.Cut(log[at+len(begins):], "\n")
	return sentence
}
