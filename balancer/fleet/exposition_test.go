package fleet

import (
	"strings"
	"testing"
)

// TestRelayedFamilies: a worker's families of vLLM's and of its device are passed on
// with its name; all else is its own.
func TestRelayedFamilies(t *testing.T) {
	m := newMerge()
	page := "# HELP vllm:num_requests_running R.\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 1.0\n" +
		"# HELP process_resident_memory_bytes M.\n# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 7\n" +
		"# HELP http_requests_total H.\n# TYPE http_requests_total counter\nhttp_requests_total{status=\"5xx\"} 3\n" +
		"# HELP roundhouse_device_power_watts P.\n# TYPE roundhouse_device_power_watts gauge\nroundhouse_device_power_watts{device=\"A\",pci=\"0000:18:00.0\"} 120\n"
	m.add([]byte(page), "p/1")
	m.add([]byte(page), "p/2")
	var b strings.Builder
	m.write(&b)
	want := `# HELP vllm:num_requests_running R.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{worker="p/1",engine="0"} 1.0
vllm:num_requests_running{worker="p/2",engine="0"} 1.0
# HELP http_requests_total H.
# TYPE http_requests_total counter
http_requests_total{worker="p/1",status="5xx"} 3
http_requests_total{worker="p/2",status="5xx"} 3
# HELP roundhouse_device_power_watts P.
# TYPE roundhouse_device_power_watts gauge
roundhouse_device_power_watts{worker="p/1",device="A",pci="0000:18:00.0"} 120
roundhouse_device_power_watts{worker="p/2",device="A",pci="0000:18:00.0"} 120
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
