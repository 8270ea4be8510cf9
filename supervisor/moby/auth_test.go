package moby

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	registryapi "github.com/docker/docker/api/types/registry"
)

// helper puts a credential helper into PATH, whose `get` runs a shell's text with the
// registry in $server.
func helper(t *testing.T, name, text string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-"+name), []byte("#!/bin/sh\n[ \"$1\" = get ] || exit 9\nread -r server\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// login is a folder of Docker's client.
func folder(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What docker login has left is shown to the image's own registry and to no other.
func TestAuths(t *testing.T) {
	pair := base64.StdEncoding.EncodeToString([]byte("ann:s3cret:more"))
	if got, err := Auths(t.TempDir())(t.Context(), "vllm/vllm-openai:v1"); got != "" || err != nil {
		t.Errorf("with no file: %q %v", got, err)
	}
	auth := Auths(folder(t, `{"auths":{"https://index.docker.io/v1/":{"auth":"`+pair+`"},"example.test:5000":{"auth":"`+pair+`"}}}`))
	f := func(image, server string) {
		t.Helper()
		got, err := auth(t.Context(), image)
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
}

// A registry's own helper is asked first, then the store, then the file; a helper
// gives a name and a password, or a token.
func TestHelpers(t *testing.T) {
	helper(t, "cloud", `echo "{\"ServerURL\":\"$server\",\"Username\":\"cloud\",\"Secret\":\"for $server\"}"`)
	helper(t, "store", `case $server in
*token*) echo '{"Username":"<token>","Secret":"identity"}' ;;
*stored*|*index.docker.io*) echo '{"Username":"ann","Secret":"stored"}' ;;
*) echo 'credentials not found in native keychain'; exit 1 ;;
esac`)
	pair := base64.StdEncoding.EncodeToString([]byte("file:filed"))
	auth := Auths(folder(t, `{"auths":{"stored.test":{},"filed.test":{"auth":"`+pair+`"}},"credsStore":"store","credHelpers":{"cloud.test":"cloud"}}`))
	f := func(image string, want registryapi.AuthConfig) {
		t.Helper()
		got, err := auth(t.Context(), image)
		if err != nil {
			t.Errorf("%s: %v", image, err)
			return
		}
		if got == "" {
			if want != (registryapi.AuthConfig{}) {
				t.Errorf("%s: nothing", image)
			}
			return
		}
		if a, err := registryapi.DecodeAuthConfig(got); err != nil || *a != want {
			t.Errorf("%s: %+v %v; want %+v", image, a, err, want)
		}
	}
	f("cloud.test/a:1", registryapi.AuthConfig{Username: "cloud", Password: "for cloud.test", ServerAddress: "cloud.test"})
	f("stored.test/a:1", registryapi.AuthConfig{Username: "ann", Password: "stored", ServerAddress: "stored.test"})
	f("vllm/vllm-openai:v1", registryapi.AuthConfig{Username: "ann", Password: "stored", ServerAddress: hub})
	f("token.test/a:1", registryapi.AuthConfig{IdentityToken: "identity", ServerAddress: "token.test"})
	f("filed.test/a:1", registryapi.AuthConfig{Username: "file", Password: "filed", ServerAddress: "filed.test"})
	f("nobody.test/a:1", registryapi.AuthConfig{})

	// A store that is gone hinders those alone whose login lies in it.
	gone := Auths(folder(t, `{"auths":{"stored.test":{},"filed.test":{"auth":"`+pair+`"}},"credsStore":"roundhouse-none","credHelpers":{"own.test":"roundhouse-none"}}`))
	for _, image := range []string{"nobody.test/a:1", "filed.test/a:1"} {
		if _, err := gone(t.Context(), image); err != nil {
			t.Errorf("%s: %v", image, err)
		}
	}
	for _, image := range []string{"stored.test/a:1", "own.test/a:1"} {
		if _, err := gone(t.Context(), image); err == nil || !strings.Contains(err.Error(), "docker-credential-roundhouse-none") || !strings.Contains(err.Error(), strings.TrimSuffix(image, "/a:1")) || !strings.Contains(err.Error(), "PATH") {
			t.Errorf("%s: %v", image, err)
		}
	}
}

// A helper that fails, answers nonsense or hangs is an error that names it and the
// registry, and tells nothing of what it wrote.
func TestHelperFails(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		helper(t, "bad", text)
		auth := Auths(folder(t, `{"credHelpers":{"a.test":"bad"}}`))
		_, err := auth(t.Context(), "a.test/a:1")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "docker-credential-bad, asked for a.test") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	f(`echo '{"Username":"u","Secret":"s3cret"}'; echo s3cret >&2; exit 3`, "exit status 3")
	f(`echo 's3cret'`, "not the JSON that a helper gives")
	f(`echo '{"Username":"u"}'`, "holds no secret")
	f(`head -c 3000000 /dev/zero`, "more than")
	auth := Auths(folder(t, `{"credHelpers":{"a.test":"../../bin/sh"}}`))
	if _, err := auth(t.Context(), "a.test/a:1"); err == nil || !strings.Contains(err.Error(), "no program's") {
		t.Errorf("a path for a name: %v", err)
	}
	before := helperTime
	helperTime = 100 * time.Millisecond
	defer func() { helperTime = before }()
	f(`sleep 1000 & wait`, "has not answered")
}
