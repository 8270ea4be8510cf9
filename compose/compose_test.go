package compose

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"roundhouse/configs"
)

var update = flag.Bool("update", false, "write the dashboards anew")

// TestDashboardFiles: the shipped files are what the tables say.
func TestDashboardFiles(t *testing.T) {
	for _, d := range Dashboards() {
		text, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("grafana", "dashboards", d.UID+".json")
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, text) {
			t.Errorf("%s is not what the tables say; go test ./compose -update writes it (%v)", path, err)
		}
		if !json.Valid(text) {
			t.Errorf("%s is not JSON", path)
		}
	}
}

// rule is what is read of an alert.
type rule struct {
	Alert       string
	Expr        string
	Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile("prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var out []rule
	for _, g := range file.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

var (
	metricName = regexp.MustCompile(`\b(?:roundhouse_|vllm:)[a-z0-9_]+`)
	selector   = regexp.MustCompile(`((?:roundhouse_|vllm:)[a-z0-9_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping   = regexp.MustCompile(`(?:by|on) \(([^)]*)\)`)
	known      = map[string]Metric{}
)

// metric finds what a name in a query asks for.
func metric(name string) (Metric, bool) {
	for _, m := range Metrics() {
		known[m.Name] = m
	}
	m, ok := known[name]
	if ok {
		return m, m.Kind != "histogram"
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(name, suffix); cut && known[base].Kind == "histogram" {
			return known[base], true
		}
	}
	return Metric{}, false
}

// lint says what is wrong with a query: a metric that nobody exports, a label
// that it does not have, a counter without its rate.
func lint(t *testing.T, where, expr string) {
	t.Helper()
	var labels []string
	for _, name := range metricName.FindAllString(expr, -1) {
		m, ok := metric(name)
		if !ok {
			t.Errorf("%s asks for %s, which nobody exports", where, name)
			continue
		}
		labels = append(labels, m.Labels...)
		if m.Kind != "gauge" && !regexp.MustCompile(`(rate|increase)\(`+regexp.QuoteMeta(name)).MatchString(expr) {
			t.Errorf("%s: %s only grows; ask for its rate", where, name)
		}
	}
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		have, _ := metric(m[1])
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(have.Labels, label[1]) {
				t.Errorf("%s: %s has no label %s", where, m[1], label[1])
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			if label = strings.TrimSpace(label); label != "le" && !slices.Contains(labels, label) {
				t.Errorf("%s groups by %s, which none of its metrics has", where, label)
			}
		}
	}
}

func TestQueries(t *testing.T) {
	for _, d := range Dashboards() {
		for _, v := range d.Variables {
			if m, ok := metric(v.Metric); !ok || !slices.Contains(m.Labels, v.Label) {
				t.Errorf("%s: the variable %s asks for %s of %s", d.UID, v.Name, v.Label, v.Metric)
			}
		}
		for _, row := range d.Rows {
			for _, p := range row.Panels {
				for _, q := range p.Queries {
					lint(t, d.UID+", "+p.Title, q.Expr)
				}
			}
		}
	}
	for _, r := range rules(t) {
		lint(t, r.Alert, r.Expr)
	}
}

// TestMetricsAreExported: each of our own names stands in the code of door,
// supervisor or worker.
func TestMetricsAreExported(t *testing.T) {
	code := ""
	for _, folder := range []string{"../balancer", "../supervisor", "../worker/device"} {
		err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			code += string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range Metrics() {
		short, ours := strings.CutPrefix(m.Name, "roundhouse_")
		if ours && !slices.ContainsFunc([]string{m.Name, short, strings.TrimPrefix(short, "device_")}, func(s string) bool { return strings.Contains(code, `"`+s+`"`) }) {
			t.Errorf("nothing exports %s", m.Name)
		}
	}
}

// TestAlerts: each says what is so and what to do, and each is tried by a
// test of promtool's.
func TestAlerts(t *testing.T) {
	tests, err := os.ReadFile("prometheus/rules_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules(t) {
		if r.Annotations["summary"] == "" || len(r.Annotations["action"]) < 40 {
			t.Errorf("%s does not say what is so and what to do", r.Alert)
		}
		if !bytes.Contains(tests, []byte(r.Alert)) {
			t.Errorf("%s is tried by no test", r.Alert)
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing (Debian: prometheus)")
	}
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}, {"check", "config", "--syntax-only", "prometheus.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestYAML: every file that compose, Prometheus or Grafana reads is YAML.
func TestYAML(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob("*/*.yml")
	provisioning, _ := filepath.Glob("grafana/provisioning/*/*.yml")
	for _, file := range slices.Concat(files, more, provisioning) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var any map[string]any
		if err := yaml.Unmarshal(text, &any); err != nil || len(any) == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestConfigurations: those that are shipped in images and packages are valid.
func TestConfigurations(t *testing.T) {
	for _, file := range []string{"etc/roundhouse.hcl", "etc-vllm/roundhouse.hcl", "etc-xpu/roundhouse.hcl", "etc-swarm/roundhouse.hcl", "debian/roundhouse.hcl"} {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := configs.Parse(file, src, func(string) (string, bool) { return "an/image:tag", true }); err != nil {
			t.Error(err)
		}
		if text, err := configs.Format(file, src); err != nil || string(text) != string(src) {
			t.Errorf("%s is not formatted: %v", file, err)
		}
	}
}
