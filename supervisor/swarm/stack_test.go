//go:build docker

package swarm

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"

	"roundhouse/supervisor/driver/drivertest"
)

// compose/stack.yaml as it is shipped: doors and a supervisor that Swarm keeps alive,
// with workers on a network of the Swarm's own. The supervisor is killed while
// requests run, and succeeded by the one that Swarm starts; the end leaves nothing.
func TestStack(t *testing.T) {
	m := managerFor(t)
	docker := func(args ...string) string {
		t.Helper()
		return sh(t, append([]string{"docker", "-H", m.host.URL}, args...)...)
	}
	pack := exec.Command("../../compose/images", "roundhouse", "worker-cpu")
	pack.Env = append(os.Environ(), "DOCKER_HOST="+m.host.URL)
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	folder, err := filepath.Abs("../../compose")
	if err != nil {
		t.Fatal(err)
	}
	docker("network", "create", "--driver", "overlay", "--attachable", "roundhouse")
	docker("node", "update", "--label-add", "roundhouse=front", docker("node", "ls", "--quiet", "--filter", "role=manager"))
	deploy := exec.Command("docker", "-H", m.host.URL, "stack", "deploy", "--resolve-image", "never", "-c", folder+"/stack.yaml", "roundhouse")
	deploy.Env = append(os.Environ(), "ROUNDHOUSE_CONFIG="+folder+"/etc-swarm", "DOCKER_SOCKET="+strings.TrimPrefix(m.host.URL, "unix://"))
	if out, err := deploy.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	inside := func(args ...string) (string, error) {
		id, err := exec.Command("docker", "-H", m.host.URL, "ps", "--quiet", "--filter", "label=com.docker.swarm.service.name=roundhouse_supervisor").Output()
		if err != nil || len(id) == 0 {
			return "", err
		}
		out, err := exec.Command("docker", append([]string{"-H", m.host.URL, "exec", strings.Fields(string(id))[0], "roundhouse"}, args...)...).CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := inside("ps")
			for _, s := range []string{"supervisor", "door"} {
				logs, _ := exec.Command("docker", "-H", m.host.URL, "service", "logs", "roundhouse_"+s).CombinedOutput()
				ps, _ := exec.Command("docker", "-H", m.host.URL, "service", "ps", "--no-trunc", "roundhouse_"+s).CombinedOutput()
				t.Logf("%s\n%s\n%s", out, ps, logs)
			}
		}
		_ = exec.Command("docker", "-H", m.host.URL, "stack", "rm", "roundhouse").Run()
	})
	serving := func() bool {
		out, err := inside("ps")
		return err == nil && strings.Contains(out, "chat  2/2")
	}
	drivertest.Until(t, "both workers serve", serving)
	doors := strings.Fields(docker("ps", "--quiet", "--filter", "label=com.docker.swarm.service.name=roundhouse_door"))
	if len(doors) != 2 {
		t.Fatalf("%d doors; want 2", len(doors))
	}
	turn := 0
	ask := func() bool { // the doors in turns, each in its own network: not every kernel has the mesh's IPVS
		turn++
		client := httpIn("/proc/" + docker("inspect", "--format", "{{.State.Pid}}", doors[turn%2]) + "/ns/net")
		res, err := client.Post("http://127.0.0.1:8000/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"roundhouse-demo","max_tokens":8,"messages":[{"role":"user","content":"What is 27 + 15?"}]}`))
		if err != nil {
			t.Log(err)
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	}
	for range doors {
		drivertest.Until(t, "each door answers", ask)
	}
	before, err := inside("ps", "--json")
	if err != nil {
		t.Fatal(before, err)
	}
	id := docker("ps", "--quiet", "--filter", "label=com.docker.swarm.service.name=roundhouse_supervisor")
	docker("kill", id)
	answers := 0
	drivertest.Until(t, "Swarm has started the supervisor anew, and it has found all", func() bool {
		if !ask() {
			t.Error("a request was lost while the supervisor was away")
		}
		answers++
		now := docker("ps", "--quiet", "--filter", "label=com.docker.swarm.service.name=roundhouse_supervisor")
		return now != "" && now != id && serving()
	})
	t.Logf("%d answers while the supervisor was away, 0 lost", answers)
	list, err := m.client.ServiceList(t.Context(), swarm.ServiceListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if strings.HasPrefix(s.Spec.Name, "roundhouse-chat-") && s.Spec.Labels["roundhouse.generation"] != "1" {
			t.Errorf("%s was restarted", s.Spec.Name)
		}
	}
	docker("service", "scale", "--detach", "roundhouse_door=0")
	drivertest.Until(t, "the doors have ended", func() bool {
		return docker("ps", "--quiet", "--filter", "label=com.docker.swarm.service.name=roundhouse_door") == ""
	})
	docker("stack", "rm", "roundhouse")
	drivertest.Until(t, "nothing is left", func() bool {
		list, err := m.client.ServiceList(t.Context(), swarm.ServiceListOptions{})
		return err == nil && len(list) == 0 && docker("ps", "--quiet") == ""
	})
}
