package test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The page on migration names every option of the set-up that most come from, in
// the shape in which import is tried on it: each key and variable of the compose
// file, each flag of the engine, each word of the proxy's configuration, and what
// the script calls.
func TestMigrationTable(t *testing.T) {
	const old = "../configs/importer/testdata/two_engines/"
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, page, _ := strings.Cut(read("../docs/migrate.md"), "\n## Two containers behind HAProxy")
	table, _, found := strings.Cut(page, "\n### ")
	if !found {
		t.Fatal("docs/migrate.md has no section on two containers behind HAProxy")
	}

	options := map[string]string{}
	var compose struct {
		Services map[string]map[string]any
	}
	if err := yaml.Unmarshal([]byte(read(old+"docker-compose.yml")), &compose); err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`(?:^| )(--?[a-z][a-z-]*)`)
	for _, service := range compose.Services {
		for key, value := range service {
			options[key] = "compose"
			if variables, ok := value.(map[string]any); ok {
				for name := range variables {
					options[name] = "environment"
				}
			}
			if line, ok := value.(string); ok && key == "entrypoint" {
				_, line, _ = strings.Cut(line, "vllm serve")
				for _, m := range flag.FindAllStringSubmatch(line, -1) {
					options[m[1]] = "flag"
				}
			}
		}
	}
	// A line that is not indented begins a section; of timeouts and options the second
	// word is the name.
	for line := range strings.Lines(read(old + "haproxy.cfg")) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0, !strings.HasPrefix(line, " "), words[0] == "log":
		case words[0] == "timeout" || words[0] == "option":
			options[words[0]+" "+words[1]] = "proxy"
		default:
			options[words[0]] = "proxy"
		}
	}
	for _, word := range []string{"log stdout", "vllm_bootstrap_and_rotate.sh", "env-override.yml", "UR_L0_USE_IMMEDIATE_COMMANDLISTS", "* 3 * * *", "socat", "curl", "enable server", "disable server",
		"/health", "num_requests_running", "docker stop", "vllm_rotate.log", "scrape_interval", "9090", "3000", "admin/admin", "9999"} {
		options[word] = "script and monitor"
	}
	if len(options) < 50 {
		t.Fatalf("only %d options were found in %s", len(options), old)
	}
	for option, of := range options {
		if !strings.Contains(table, option) {
			t.Errorf("%s (%s) is not in the table of docs/migrate.md", option, of)
		}
	}
}
