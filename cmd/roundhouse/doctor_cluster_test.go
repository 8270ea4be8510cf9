package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/kube"
	"roundhouse/kube/kubetest"
)

// TestDoctorOfPods names each right that the account lacks, and each budget that makes a
// rotation impossible.
func TestDoctorOfPods(t *testing.T) {
	type object = kubetest.Object
	budget := func(name string, spec object, expected int) object {
		spec["selector"] = object{"matchLabels": object{"app": "vllm"}}
		return object{"metadata": object{"name": name}, "spec": spec, "status": object{"expectedPods": expected}}
	}
	for _, one := range []struct {
		name string
		set  func(*kubetest.Server)
		want []string
	}{
		{"all is well", func(api *kubetest.Server) {
			api.Change(kubetest.Budgets, "uid", budget("one", object{"maxUnavailable": 1}, 2))
		}, []string{"2 pods in namespace here; the account has the rights it takes", "!PodDisruptionBudget"}},
		{"no rights", func(api *kubetest.Server) { api.Denied = []string{"create pods/eviction", "update leases"} },
			[]string{"may not create pods/eviction in namespace here", "may not update leases.coordination.k8s.io", "!may not patch"}},
		{"no pods", func(api *kubetest.Server) {
			api.Change(kubetest.Pods, "a", nil)
			api.Change(kubetest.Pods, "b", nil)
		}, []string{"no pod is selected in namespace here"}},
		{"maxUnavailable", func(api *kubetest.Server) {
			api.Change(kubetest.Budgets, "uid", budget("strict", object{"maxUnavailable": 0}, 2))
		}, []string{"PodDisruptionBudget strict allows no eviction ever: its maxUnavailable is 0"}},
		{"minAvailable", func(api *kubetest.Server) {
			api.Change(kubetest.Budgets, "uid", budget("strict", object{"minAvailable": 2}, 2))
		}, []string{"its minAvailable is 2 of 2 pods"}},
		{"a share", func(api *kubetest.Server) {
			api.Change(kubetest.Budgets, "uid", budget("half", object{"minAvailable": "50%"}, 2))
		}, []string{"!allows no eviction"}},
		{"two budgets", func(api *kubetest.Server) {
			api.Change(kubetest.Budgets, "x", budget("mine", object{"maxUnavailable": 1}, 2))
			api.Change(kubetest.Budgets, "y", budget("yours", object{"maxUnavailable": 1}, 2))
		}, []string{"mine and yours select the same pods: the API server evicts none of them"}},
		{"another pool's budget", func(api *kubetest.Server) {
			other := budget("other", object{"maxUnavailable": 0}, 2)
			other["spec"].(object)["selector"] = object{"matchLabels": object{"app": "other"}}
			api.Change(kubetest.Budgets, "uid", other)
		}, []string{"!allows no eviction"}},
		{"a server that refuses", func(api *kubetest.Server) { api.Refuse = 503 }, []string{"what this account may do is not known", "503"}},
	} {
		t.Run(one.name, func(t *testing.T) {
			api := kubetest.New(t)
			api.Change(kubetest.Pods, "a", kubetest.Pod("a", "10.0.0.1", true))
			api.Change(kubetest.Pods, "b", kubetest.Pod("b", "10.0.0.2", true))
			one.set(api)
			file := filepath.Join(t.TempDir(), "roundhouse.hcl")
			text := "admin {\n  listen = \"127.0.0.1:1\"\n}\npool \"chat\" {\n  driver = \"kubernetes\"\n  selector = \"app=vllm\"\n  port = 8000\n  rotation {\n    schedule = \"0 3 * * *\"\n  }\n}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			c := inPod(t, api, &said)
			c.run(root(c), []string{"doctor", "-c", file, "--kubernetes-account", api.Folder})
			may := rights(kube.Rights(false, true))
			may["create .authorization.k8s.io"] = true // what they may anyone may ask
			for right := range asked(api) {
				if !may[right] {
					t.Errorf("the doctor asks to %s", right)
				}
			}
			for _, want := range one.want {
				not, says := strings.CutPrefix(want, "!")
				if strings.Contains(said.String(), not) == says {
					t.Errorf("%q: %v in\n%s", not, says, said.String())
				}
			}
		})
	}
}
