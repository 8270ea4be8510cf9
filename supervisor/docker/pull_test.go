package docker

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/supervisor/moby"
)

// registry is where one image is pulled from: the smallest that an engine takes for one.
type registry struct {
	*httptest.Server
	mu        sync.Mutex
	blobs     map[string][]byte
	manifest  []byte
	manifests int    // times that the manifest was asked for by its tag
	broken    bool   // blobs come with a flipped bit
	password  string // asked for, of ann; empty: nobody is asked
}

const manifestType = "application/vnd.docker.distribution.manifest.v2+json"

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

func newRegistry(t *testing.T, layer []byte) *registry {
	t.Helper()
	r := &registry{blobs: map[string][]byte{}}
	r.publish(t, layer, "1")
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// publish puts an image under the tag, whose label tells it from others. args go to its
// program before a container's own.
func (r *registry) publish(t *testing.T, layer []byte, label string, args ...string) {
	t.Helper()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(layer); errors.Join(err, w.Close()) != nil {
		t.Fatal("the layer cannot be compressed")
	}
	entrypoint, err := json.Marshal(append([]string{"/worker"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Appendf(nil, `{"architecture":%q,"os":"linux","config":{"Entrypoint":%s,"Labels":{"of":%q}},"rootfs":{"type":"layers","diff_ids":[%q]}}`, runtime.GOARCH, entrypoint, label, digest(layer))
	part := func(kind string, data []byte) map[string]any {
		r.blobs[digest(data)] = data
		return map[string]any{"mediaType": "application/vnd.docker." + kind, "size": len(data), "digest": digest(data)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.manifest, err = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": part("container.image.v1+json", config), "layers": []any{part("image.rootfs.diff.tar.gzip", zipped.Bytes())},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if user, password, _ := req.BasicAuth(); r.password != "" && (user != "ann" || password != r.password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="tests"`)
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	}
	at := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
	switch {
	case req.URL.Path == "/v2/":
	case strings.Contains(req.URL.Path, "/manifests/"):
		if !strings.HasPrefix(at, "sha256:") {
			r.manifests++
		}
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", digest(r.manifest))
		http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(r.manifest))
	case r.blobs[at] != nil:
		data := bytes.Clone(r.blobs[at])
		if r.broken {
			data[len(data)/2] ^= 1
		}
		http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(data))
	default:
		http.NotFound(w, req)
	}
}

// damage has blobs come broken from now on, or whole.
func (r *registry) damage(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = yes
}

func (r *registry) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.manifests
}

// Each pull policy against a real registry: "missing" pulls once, "always" each time and
// so gets what was published since, "never" does not. An image that comes broken, or a
// registry that is gone, is an error that names the image, and leaves no container; it
// is found by Prepare, before anything is drained.
func TestPull(t *testing.T) {
	if *rootless {
		t.Skip("the test's registry is on this machine's loopback, which a rootless engine does not reach")
	}
	l, d := driverFor(t)
	data := layer(t)
	r := newRegistry(t, data)
	name := strings.TrimPrefix(r.URL, "http://") + "/worker:1"
	ids := map[string]bool{} // of images that it ran: one that has lost its name is not found by it
	t.Cleanup(func() {
		for id := range ids {
			if _, err := l.client.ImageRemove(context.Background(), id, image.RemoveOptions{Force: true}); err != nil {
				t.Error(err)
			}
		}
	})
	generation := uint64(0)
	run := func(policy string) error {
		t.Helper()
		generation++
		spec := specFor("1", generation)
		spec.Container.Image, spec.Container.PullPolicy = name, policy
		if err := errors.Join(d.Prepare(t.Context(), spec), d.Start(t.Context(), spec)); err != nil {
			return err
		}
		i := drivertest.Only(t, d)
		drivertest.Until(t, "it answers", func() bool { return healthy(i.URL) })
		if c, err := l.client.ContainerInspect(t.Context(), "roundhouse-pool-1"); err != nil {
			t.Error(err)
		} else {
			ids[c.Image] = true
		}
		return d.Stop(t.Context(), "pool/1", generation, 5*time.Second)
	}
	if err := run("never"); err == nil || !strings.Contains(err.Error(), name) || r.asked() > 0 {
		t.Errorf("never: %v, asked %d times", err, r.asked())
	}
	r.damage(true)
	if err := run("missing"); err == nil || !strings.Contains(err.Error(), name) || errors.Is(err, driver.ErrAway) {
		t.Errorf("a broken image: %v", err)
	}
	if list, err := d.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("left %v %v", list, err)
	}
	r.damage(false)
	before := r.asked()
	for range 2 {
		if err := run("missing"); err != nil {
			t.Errorf("missing: %v", err)
		}
	}
	once := r.asked()
	if once == before {
		t.Error("the image that was missing was not asked for")
	}
	if err := run("missing"); err != nil || r.asked() != once {
		t.Errorf("missing, and there: %v, asked %d times more", err, r.asked()-once)
	}
	r.publish(t, data, "2")
	if err := run("always"); err != nil {
		t.Errorf("always: %v", err)
	}
	c, err := l.client.ContainerInspect(t.Context(), "roundhouse-pool-1")
	if err != nil || c.Config.Labels["of"] != "2" {
		t.Errorf("always: it runs the image %q, %v", c.Config.Labels["of"], err)
	}
	r.Close()
	if err := run("always"); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("without its registry: %v", err)
	}
	if err := run("missing"); err != nil {
		t.Errorf("there, and without its registry: %v", err)
	}
}

// An image of a registry that asks who comes is pulled with what a credential helper
// says, by a program that runs at each pull; without it the pull names the image, and
// with one that fails also the helper and the registry.
func TestPullWithHelper(t *testing.T) {
	if *rootless {
		t.Skip("the test's registry is on this machine's loopback, which a rootless engine does not reach")
	}
	l, d := driverFor(t)
	r := newRegistry(t, layer(t))
	r.password = "s3cret-" + strings.ToLower(t.Name())
	server := strings.TrimPrefix(r.URL, "http://")
	spec := specFor("1", 1)
	spec.Container.Image, spec.Container.PullPolicy = server+"/worker:1", "missing"
	dir := t.TempDir()
	program := filepath.Join(dir, "docker-credential-tests")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	write(filepath.Join(dir, "config.json"), `{"auths":{"`+server+`":{}},"credsStore":"tests"}`)
	d.host.Auth = moby.Auths(dir)

	refused := func(script string, want ...string) {
		t.Helper()
		write(program, script)
		err := d.Prepare(t.Context(), spec)
		for _, w := range append(want, spec.Container.Image) {
			if err == nil || !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v; want it to say %q", err, w)
			}
		}
	}
	refused("#!/bin/sh\necho 'credentials not found in native keychain'\nexit 1\n")
	refused("#!/bin/sh\necho s3cret-in-an-error\nexit 4\n", "docker-credential-tests", server, "exit status 4")
	write(program, `#!/bin/sh
read -r server
[ "$1 $server" = "get `+server+`" ] && echo '{"ServerURL":"`+server+`","Username":"ann","Secret":"`+r.password+`"}'
`)
	if err := errors.Join(d.Prepare(t.Context(), spec), d.Start(t.Context(), spec)); err != nil {
		t.Fatal(err)
	}
	i := drivertest.Only(t, d)
	drivertest.Until(t, "it answers", func() bool { return healthy(i.URL) })
	// An image that a container still runs would only lose its name.
	if err := d.Stop(t.Context(), "pool/1", spec.Generation, 5*time.Second); err != nil {
		t.Error(err)
	}
	if _, err := l.client.ImageRemove(t.Context(), spec.Container.Image, image.RemoveOptions{Force: true}); err != nil {
		t.Error(err)
	}
}
