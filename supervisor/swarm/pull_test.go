//go:build docker

package swarm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	registryapi "github.com/docker/docker/api/types/registry"
	"github.com/opencontainers/go-digest"

	"roundhouse/supervisor/driver/drivertest"
)

// shelf is where one image is pulled from, by those who have logged in.
type shelf struct {
	blobs    map[string][]byte
	manifest []byte
}

const manifestType = "application/vnd.docker.distribution.manifest.v2+json"

// newShelf makes one of an image of the test worker.
func newShelf(t *testing.T) *shelf {
	t.Helper()
	r := &shelf{blobs: map[string][]byte{}}
	layer := drivertest.Layer(t, "worker", testWorker(t))
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write(layer)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	config := fmt.Appendf(nil, `{"architecture":%q,"os":"linux","config":{"Entrypoint":["/worker"]},"rootfs":{"type":"layers","diff_ids":[%q]}}`, runtime.GOARCH, digest.FromBytes(layer))
	part := func(kind string, data []byte) map[string]any {
		at := digest.FromBytes(data).String()
		r.blobs[at] = data
		return map[string]any{"mediaType": "application/vnd.docker." + kind, "size": len(data), "digest": at}
	}
	if r.manifest, err = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": part("container.image.v1+json", config), "layers": []any{part("image.rootfs.diff.tar.gzip", zipped.Bytes())},
	}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *shelf) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if user, password, ok := req.BasicAuth(); !ok || user != "ann" || password != "s3cret" {
		w.Header().Set("WWW-Authenticate", `Basic realm="tests"`)
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	}
	at := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
	switch {
	case req.URL.Path == "/v2/":
	case strings.Contains(req.URL.Path, "/manifests/"):
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(r.manifest).String())
		http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(r.manifest))
	case r.blobs[at] != nil:
		http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(r.blobs[at]))
	default:
		http.NotFound(w, req)
	}
}

// An image that the manager has not got is pinned to what its registry says and pulled
// by the node, with what docker login has left; without that, the registry's refusal is
// the answer.
func TestPull(t *testing.T) {
	n, d := driverFor(t)
	r := newShelf(t)
	var l net.Listener
	if err := within("/run/netns/"+n.name, func() (err error) {
		l, err = net.Listen("tcp", "127.0.0.1:5000")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: r}
	go server.Serve(l)
	defer server.Close()

	const name = "127.0.0.1:5000/tests/worker:1"
	spec := specFor("1", 1)
	spec.Container.Image, spec.Container.PullPolicy = name, "missing"
	if err := d.Prepare(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "cannot ask its registry for the image "+name) {
		t.Errorf("nobody has logged in: %v", err)
	}
	d.auth = func(context.Context, string) (string, error) {
		return registryapi.EncodeAuthConfig(registryapi.AuthConfig{Username: "ann", Password: "s3cret", ServerAddress: "127.0.0.1:5000"})
	}
	pinned := name + "@" + digest.FromBytes(r.manifest).String()
	for generation, policy := range []string{"missing", "always", "missing", "resolved"} {
		spec.Generation, spec.Container.PullPolicy = uint64(generation+1), policy
		if policy == "resolved" { // what a preparation has found holds, and nobody is asked again
			spec.Container.PullPolicy = "always"
			var err error
			if spec.Image, err = d.Resolve(t.Context(), spec); err != nil || spec.Image != pinned {
				t.Errorf("the name stands for %q, %v; want %s", spec.Image, err, pinned)
			}
			server.Close()
		}
		startAtLast(t, d, spec)
		i := drivertest.Only(t, d)
		drivertest.Until(t, "it answers", func() bool { return n.healthy(i.URL) })
		list, err := d.ours(t.Context(), "pool/1")
		if err != nil {
			t.Fatal(err)
		}
		if got := list[0].Spec.TaskTemplate.ContainerSpec.Image; i.Image != name || strings.Replace(got, "worker@", "worker:1@", 1) != pinned {
			t.Errorf("%s: the node is told %s, and %s is shown; want %s", policy, got, i.Image, pinned)
		}
		if err := d.Stop(t.Context(), "pool/1", spec.Generation, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.client.ImageRemove(t.Context(), pinned, image.RemoveOptions{Force: true}); err != nil {
		t.Log(err)
	}
}
