package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadme runs every command of README.md: what stands in its sh blocks
// against a running system, in order, and the commands that its table names.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, strings.Replace(twoWorkers, "%s", "", 1))
	request := ""

	run := func(line string) {
		t.Helper()
		if target, ok := strings.CutPrefix(line, "make "); ok {
			target = strings.Fields(target)[0]
			if out, err := exec.Command("make", "-n", "-C", "..", target).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", line, err, out)
			}
			return
		}
		if strings.HasPrefix(line, "go test ") {
			checkGoTest(t, line)
			return
		}
		command := strings.ReplaceAll(line, "http://127.0.0.1:8000", s.Door)
		if rest, ok := strings.CutPrefix(command, "bin/roundhouse "); ok {
			rest = strings.Replace(rest, " ID", " "+request, 1)
			command = built.Path(t, "roundhouse") + " " + rest
			if verb := strings.Fields(rest)[0]; !slices.Contains([]string{"validate", "fmt", "bench", "version"}, verb) {
				command += " --admin " + s.Admin
			}
		}
		cmd := exec.Command("sh", "-c", strings.Replace(command, "curl ", "curl -fi ", 1))
		cmd.Dir = ".."
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		if id := regexp.MustCompile(`(?im)^x-request-id: *(\S+)`).FindSubmatch(out); id != nil {
			request = string(id[1])
		}
	}

	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
			run(line)
		}
	}
	for _, inline := range regexp.MustCompile("`((?:bin/roundhouse [a-z]+ [^`]+|make [a-z]|go test )[^`]*)`").FindAllStringSubmatch(string(text), -1) {
		run(inline[1])
	}
}

// checkGoTest holds that a `go test` command of the README names tests that
// exist; they run as tests of their own.
func checkGoTest(t *testing.T, line string) {
	t.Helper()
	m := regexp.MustCompile(`-run (\S+).* (\./\S+)$`).FindStringSubmatch(line)
	if m == nil {
		t.Errorf("%s: no test is named", line)
		return
	}
	files, err := filepath.Glob(filepath.Join("..", m[2], "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^func Test\w*` + strings.TrimPrefix(m[1], "Test") + `\w*\(`).Match(text) {
			return
		}
	}
	t.Errorf("%s: there is no such test", line)
}
