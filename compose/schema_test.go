//go:build clients

package compose

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// plain is the type T as it is written in JSON: the words of an enumeration
// instead of its names.
const plain = `type Plain<T> = T extends string ? ` + "`${T}`" + ` : T extends (infer U)[] ? Plain<U>[] : T extends object ? {[K in keyof T]: Plain<T[K]>} : T;
`

// modules are the files of Grafana's schema that describe a kind of panel.
var modules = map[string]string{"timeseries": "timeseries", "stat": "stat", "heatmap": "heatmap", "state-timeline": "statetimeline", "table": "table"}

// TestClientsGrafanaSchema holds the dashboards to the types that Grafana publishes
// (@grafana/schema): a page, its panels, and the options of each kind of panel.
// A field that Grafana does not know, or a value that it has no word for, is an
// error of the TypeScript compiler.
func TestClientsGrafanaSchema(t *testing.T) {
	home, err := filepath.Abs("../build/clients/node")
	if err != nil {
		t.Fatal(err)
	}
	types := filepath.Join(home, "node_modules/@grafana/schema/dist/types/raw")
	if _, err := os.Stat(types); err != nil {
		t.Fatalf("%v; run make test-prepare", err)
	}
	var program strings.Builder
	fmt.Fprintf(&program, "import type * as D from %q;\n%s", types+"/dashboard/x/types.gen", plain)
	for _, kind := range modules {
		fmt.Fprintf(&program, "import type * as %s from %q;\n", kind, types+"/composable/"+kind+"/panelcfg/x/types.gen")
	}
	panels := 0
	for _, d := range Dashboards() {
		text, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		panels += typed(t, &program, text)
	}
	if panels < 30 {
		t.Fatalf("%d panels; the dashboards have more", panels)
	}
	file := filepath.Join(t.TempDir(), "dashboards.ts")
	if err := os.WriteFile(file, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(home, "node_modules/.bin/tsc"), "--noEmit", "--strict", "--skipLibCheck", "--ignoreConfig",
		"--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", file).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// typed writes a page as constants of Grafana's types and returns how many panels
// it has.
func typed(t *testing.T, program *strings.Builder, text []byte) int {
	t.Helper()
	var page map[string]any
	if err := json.Unmarshal(text, &page); err != nil {
		t.Fatal(err)
	}
	constant := func(kind string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(program, "{ const value: %s = %s; }\n", kind, text)
	}
	panels := page["panels"].([]any)
	for _, p := range panels {
		panel := p.(map[string]any)
		if panel["type"] == "row" {
			constant("Plain<D.RowPanel>", panel)
			continue
		}
		module, ok := modules[panel["type"].(string)]
		if !ok {
			t.Fatalf("%v: panels of the type %v are not checked", panel["title"], panel["type"])
		}
		constant("Plain<D.Panel>", panel)
		constant("Partial<Plain<"+module+".Options>>", panel["options"])
		if custom, ok := panel["fieldConfig"].(map[string]any)["defaults"].(map[string]any)["custom"]; ok {
			constant("Partial<Plain<"+module+".FieldConfig>>", custom)
		}
	}
	// A data source puts its own fields beside Grafana's.
	for _, v := range page["templating"].(map[string]any)["list"].([]any) {
		constant("Plain<D.VariableModel> & {definition: string}", v)
	}
	for _, a := range page["annotations"].(map[string]any)["list"].([]any) {
		constant("Plain<D.AnnotationQuery> & {expr: string, titleFormat: string, textFormat: string, step: string}", a)
	}
	page["panels"], page["templating"], page["annotations"] = []any{}, map[string]any{}, map[string]any{}
	constant("Plain<D.Dashboard>", page)
	return len(panels)
}
