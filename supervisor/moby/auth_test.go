package moby

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	registryapi "github.com/docker/docker/api/types/registry"
)

// What docker login has left is shown to the image's own registry and to no other.
func TestAuths(t *testing.T) {
	dir := t.TempDir()
	pair := base64.StdEncoding.EncodeToString([]byte("ann:s3cret:more"))
	config := `{"auths":{"https://index.docker.io/v1/":{"auth":"` + pair + `"},"example.test:5000":{"auth":"` + pair + `"},"kept.test":{}},"credsStore":"desktop","credHelpers":{"helped.test":"ecr"}}`
	auth := Auths(dir)
	if got, err := auth("vllm/vllm-openai:v1"); got != "" || err != nil {
		t.Errorf("with no file: %q %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(image, server string) {
		t.Helper()
		got, err := auth(image)
		if err != nil {
			t.Fatal(err)
		}
		if server == "" {
			if got != "" {
				t.Errorf("%s: %q is shown to a registry that nobody has logged in to", image, got)
			}
			return
		}
		a, err := registryapi.DecodeAuthConfig(got)
		if err != nil || a.Username != "ann" || a.Password != "s3cret:more" || a.ServerAddress != server {
			t.Errorf("%s: %+v %v", image, a, err)
		}
	}
	f("vllm/vllm-openai:v1", "https://index.docker.io/v1/")
	f("example.test:5000/a/b@sha256:"+strings.Repeat("0", 64), "example.test:5000")
	f("elsewhere.test/a:1", "")
	for _, image := range []string{"kept.test/a:1", "helped.test/a:1"} {
		if _, err := auth(image); err == nil || !strings.Contains(err.Error(), "helper program") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", image, err)
		}
	}
}
