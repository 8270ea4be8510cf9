package docker

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"roundhouse/configs"
	"roundhouse/supervisor/driver/drivertest"
)

// confined is what the test worker sees of it.
type confined struct {
	Files                                      []string
	Effective, NoNewPrivs, Memory, Pids, Hosts string
	Shm                                        int64
	Memlock                                    uint64
	Env, Args                                  []string
}

func lookInside(t *testing.T, at, dir string) confined {
	t.Helper()
	res, err := http.Get(at + "/inside?dir=" + url.QueryEscape(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var v confined
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// A container of a real engine gets what its pool lets through and is held to its
// limits, as the engine tells it and as a process inside finds it; a worker without
// has neither.
func TestConfined(t *testing.T) {
	if *rootless {
		t.Skip("an ordinary user's engine may have no control groups")
	}
	_, d := driverFor(t)
	spec := specFor("1", 1)
	c := &spec.Container
	c.CapAdd, c.SecurityOpt = []string{"SYS_PTRACE", "IPC_LOCK", "SYS_NICE"}, []string{"no-new-privileges"}
	c.PidsLimit, c.Memory, c.ExtraHosts = 200, 256<<20, []string{"cache.example:10.0.0.7"}
	c.Ulimits = map[string]int64{"memlock": 4 << 20} // -1 needs an engine that may raise its own
	if err := d.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context(), specFor("2", 1)); err != nil {
		t.Fatal(err)
	}
	list, err := d.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, i := range list {
		drivertest.Until(t, i.ID+" answers", func() bool { return healthy(i.URL) })
		in := lookInside(t, i.URL, "/nowhere")
		full, err := d.engine.ContainerInspect(t.Context(), i.Container)
		if err != nil {
			t.Fatal(err)
		}
		h := full.HostConfig
		const usual, more = "00000000a80425fb", "00000000a88c65fb"
		if i.ID == "pool/2" {
			if in.Effective != usual || in.NoNewPrivs != "0" || in.Pids == "200" || in.Memory == "268435456" || strings.Contains(in.Hosts, "cache.example") {
				t.Errorf("a worker that asked for nothing: %+v", in)
			}
			continue
		}
		if in.Effective != more || in.NoNewPrivs != "1" || in.Pids != "200" || in.Memory != "268435456" || in.Memlock != 4<<20 || in.Shm != 64<<20 || !strings.Contains(in.Hosts, "10.0.0.7\tcache.example") {
			t.Errorf("inside: %+v", in)
		}
		if h.Privileged || h.Memory != 256<<20 || h.MemorySwap != 256<<20 && h.MemorySwap != -1 || h.PidsLimit == nil || *h.PidsLimit != 200 || !slices.Contains(h.SecurityOpt, "no-new-privileges") || len(h.CapAdd) != 3 {
			t.Errorf("the engine says %+v", h)
		}
	}
}

// What a worker has of its own reaches its container: variables, arguments and volumes.
func TestOwn(t *testing.T) {
	_, d := driverFor(t)
	pools, mine := t.TempDir(), t.TempDir()
	open(t, pools)
	open(t, mine)
	base := specFor("", 1)
	pool := configs.Pool{Driver: "docker", Engine: base.Engine, Container: base.Container}
	pool.Container.Volumes = []string{pools + ":/data:ro"}
	for _, w := range []configs.Worker{{Name: "1"}, {Name: "2", Environment: map[string]string{"A": "own"}, Args: []string{"--served-model-name", "other"}, Volumes: []string{mine + ":/data"}}} {
		spec := specFor(w.Name, 1)
		spec.Engine, spec.Container = pool.Of(w)
		if err := d.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	list, err := d.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, i := range list {
		drivertest.Until(t, i.ID+" answers", func() bool { return healthy(i.URL) })
		in := lookInside(t, i.URL, "/nowhere")
		full, err := d.engine.ContainerInspect(t.Context(), i.Container)
		if err != nil {
			t.Fatal(err)
		}
		env, args, bind := "A=b", "fake", pools+":/data:ro"
		if i.ID == "pool/2" {
			env, args, bind = "A=own", "other", mine+":/data"
		}
		if !slices.Contains(in.Env, env) || in.Args[len(in.Args)-1] != args || !slices.Equal(full.HostConfig.Binds, []string{bind}) {
			t.Errorf("%s: %q %q %q", i.ID, in.Env, in.Args, full.HostConfig.Binds)
		}
	}
}
