//go:build docker

package compose

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// standIn lays out an OpenCL driver of the CPU, PoCL with the linker that it calls, as
// a container of ours can use it, which has neither; it returns the folder, which
// belongs at /opt/pocl. The container's own loader finds it by the environment below.
func standIn(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/*/libpocl.so.2")
	if err != nil || len(found) == 0 {
		t.Skip("there is no PoCL (Debian: pocl-opencl-icd)")
	}
	pocl, err := filepath.EvalSymlinks(found[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// PoCL looks for its own files two folders above itself.
	for _, name := range []string{"here/lib", "share", "bin", "link"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put := func(to string, from ...string) {
		t.Helper()
		run(t, ".", "cp", append(append([]string{"--recursive", "--dereference"}, from...), filepath.Join(dir, to))...)
	}
	compiler := strings.TrimSpace(run(t, ".", "gcc", "-print-libgcc-file-name"))
	put("here/lib", pocl, filepath.Join(filepath.Dir(found[0]), "pocl"))
	put("share", "/usr/share/pocl")
	put("bin/ld", "/usr/bin/ld")
	put("link/libgcc.a", compiler)
	library := regexp.MustCompile(`(\S+) => (/\S+)`)
	for _, of := range []string{pocl, "/usr/bin/ld"} {
		for _, m := range library.FindAllStringSubmatch(run(t, ".", "ldd", of), -1) {
			switch base, _, _ := strings.Cut(m[1], ".so"); base {
			case "libc", "libm", "libgcc_s": // the image has them; what PoCL builds is linked with them
				put("link/"+base+".so", m[2])
			case "libstdc++":
			default:
				put("here/lib", m[2])
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "pocl.icd"), []byte("/opt/pocl/here/lib/"+filepath.Base(pocl)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestComposeXPU: our engine's image for Intel GPUs, in compose.xpu.yaml. This machine
// has no GPU. So what is there says so, in a sentence, and ends; and then an OpenCL
// driver of the CPU in the worker's container computes in a GPU's place, with the
// kernels, the image and the OpenCL loader that a GPU would have.
func TestComposeXPU(t *testing.T) {
	if nodes, _ := filepath.Glob("/dev/dri/renderD*"); len(nodes) > 0 {
		t.Skip("this machine has a GPU, and the test is of one that has none")
	}
	c := compositionFor(t, "compose.xpu.yaml")
	packImages(t)
	packXPU(t)

	worker := exec.Command("docker", "run", "--rm", "roundhouse/worker-xpu:latest")
	var said bytes.Buffer
	worker.Stderr = &said
	if err := worker.Run(); worker.ProcessState == nil || worker.ProcessState.ExitCode() != 1 || strings.Count(said.String(), "\n") != 1 || !strings.Contains(said.String(), "/dev/dri has no render node") {
		t.Errorf("a worker without a GPU: %v\n%s", err, said.String())
	}

	c.configure("etc-xpu", `pool "chat"`, fmt.Sprintf("pool %q", c.name))
	c.clean()
	c.run("up", "--detach")
	waitFor(t, func() error {
		out, err := c.try("logs", "supervisor")
		if err == nil && !strings.Contains(out, "wanted, 0 free of the 0 on this machine") {
			err = fmt.Errorf("the supervisor says\n%s", out)
		}
		return err
	})
	c.down()

	c.configure("etc-xpu", `pool "chat" {`, fmt.Sprintf(`pool %q {
  environment = {
    OCL_ICD_VENDORS = "/opt/pocl/pocl.icd"
    LD_LIBRARY_PATH = "/opt/pocl/here/lib"
    LIBRARY_PATH    = "/opt/pocl/link"
    PATH            = "/usr/bin:/opt/pocl/bin"
  }`, c.name), "/srv/models:/models:ro", standIn(t)+":/opt/pocl:ro", `devices     = "auto"`, `devices     = "cpu"`, "workers     = 2", "workers     = 1",
		`    model             = "/models/Qwen3-8B"`, `    args = ["--device", "xpu:cpu"]`, `    quantization      = "sym_int4"`, "", `max_model_len     = 16384`, `max_model_len     = 4096`)
	c.up("1/1")
	c.chat()
	if out := c.roundhouse("logs", c.name+"/1"); !strings.Contains(out, `backend="xpu `) {
		t.Errorf("the worker computes elsewhere:\n%s", out)
	}
	c.down()
}
