package compose

import (
	"os"
	"path"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// strict reads YAML into a form that knows every field.
func strict(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	d := yaml.NewDecoder(text)
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Errorf("%s: %v", file, err)
	}
}

// TestProvisioning holds Grafana's files to the form that its documentation gives,
// and to each other: the data source that the dashboards name, the folder that is
// mounted, the address at which Prometheus listens. Grafana itself is not run here.
func TestProvisioning(t *testing.T) {
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool           `yaml:"isDefault"`
			JSONData                     map[string]any `yaml:"jsonData"`
		}
	}
	strict(t, "grafana/provisioning/datasources/prometheus.yml", &sources)
	var boards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type     string
			AllowUIUpdates bool `yaml:"allowUiUpdates"`
			Options        struct{ Path string }
		}
	}
	strict(t, "grafana/provisioning/dashboards/roundhouse.yml", &boards)
	var file struct {
		Services map[string]struct {
			NetworkMode string `yaml:"network_mode"`
			Ports       []string
			Volumes     []string
			Environment map[string]string
		}
	}
	text, err := os.ReadFile("compose.monitoring.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if sources.APIVersion != 1 || boards.APIVersion != 1 || len(sources.Datasources) != 1 || len(boards.Providers) != 1 {
		t.Fatalf("%+v %+v", sources, boards)
	}
	source, board, grafana := sources.Datasources[0], boards.Providers[0], file.Services["grafana"]
	host, _, _ := strings.Cut(strings.TrimPrefix(source.URL, "http://"), ":")
	if source.UID != sourceUID || source.Type != "prometheus" || source.Access != "proxy" || file.Services["prometheus"].NetworkMode != "service:"+host {
		t.Errorf("the data source %+v is not what the dashboards and compose.monitoring.yaml name", source)
	}
	mounted := map[string]string{}
	for _, v := range grafana.Volumes {
		from, to, _ := strings.Cut(v, ":")
		mounted[strings.TrimSuffix(to, ":ro")] = from
	}
	if mounted["/etc/grafana/provisioning"] != "./grafana/provisioning" || board.Type != "file" || mounted[board.Options.Path] != "./grafana/dashboards" {
		t.Errorf("the provider %+v reads no folder that is mounted: %v", board, mounted)
	}
	home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if _, err := os.Stat("grafana/dashboards/" + path.Base(home)); err != nil || path.Dir(home) != board.Options.Path {
		t.Errorf("the home page %s is no dashboard: %v", home, err)
	}
	for name, service := range file.Services {
		for _, port := range service.Ports {
			if !strings.Contains(port, "_LISTEN:-127.0.0.1:") {
				t.Errorf("%s publishes %s to everybody", name, port)
			}
		}
	}
}
