package docker

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/worker/device"
)

// Two workers of this machine without GPUs, as real containers, run on the CPUs and the
// memory that the plan of this very machine gives them.
func TestPlaces(t *testing.T) {
	_, d := driverFor(t)
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var allowed []int
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			allowed = append(allowed, cpu)
		}
	}
	m := device.Read("/sys", allowed)
	plan, err := m.Plan([]device.Need{{ID: "pool/1"}, {ID: "pool/2"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1", "2"} {
		place := plan["pool/"+name]
		spec := specFor(name, 1)
		spec.Place = driver.Place{CPUs: device.FormatList(place.CPUs), NUMA: place.Nodes}
		if err := d.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		list, err := d.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := list[slices.IndexFunc(list, func(i driver.Instance) bool { return i.ID == "pool/"+name })]
		drivertest.Until(t, "it answers", func() bool { return healthy(i.URL) })
		res, err := http.Get(i.URL + "/inside")
		if err != nil {
			t.Fatal(err)
		}
		var v struct{ CPUs, Mems string }
		err = json.NewDecoder(res.Body).Decode(&v)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("worker %s: planned on the CPUs %s and the memory of %v; it runs on %q and %q", name, spec.Place.CPUs, place.Nodes, v.CPUs, v.Mems)
		if !d.can().Confines {
			if i.Place.CPUs != "" {
				t.Errorf("worker %s is said to be on the CPUs %q, by an engine that keeps none", name, i.Place.CPUs)
			}
			continue
		}
		if v.CPUs != spec.Place.CPUs || len(place.Nodes) > 0 && v.Mems != device.FormatList(place.Nodes) {
			t.Errorf("worker %s runs on the CPUs %q and the memory of %q", name, v.CPUs, v.Mems)
		}
	}
}
