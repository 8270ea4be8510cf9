//go:build manifests

package manifests

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/test/program"
)

var built program.Set

func TestMain(m *testing.M) {
	code := m.Run()
	built.Remove()
	os.Exit(code)
}

// variants are the folders of kustomize, and the chart's values for the same objects.
var variants = map[string][]string{
	"base":              nil,
	"overlays/picker":   {"--set", "picker.enabled=true"},
	"overlays/rotation": {"--set", "rotation.enabled=true"},
}

// TestChart has the chart make the objects that kustomize makes.
func TestChart(t *testing.T) {
	for folder, values := range variants {
		t.Run(folder, func(t *testing.T) {
			a, b := parsed(t, kustomized(t, folder)), parsed(t, charted(t, values...))
			tell := func(all objects) any {
				o := object{}
				for k, v := range all {
					kind, name, _ := strings.Cut(k, " ")
					o[kind+" "+plain(name).(string)] = plain(v)
				}
				return o
			}
			for _, d := range differences("", tell(a), tell(b)) {
				t.Error(d)
			}
		})
	}
}

// rendered is all that there is to hold to types and program.
func rendered(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{
		"picker and rotation": charted(t, "--set", "picker.enabled=true,rotation.enabled=true,pool.selector=app=vllm\\,tier=gpu"),
		"another name":        charted(t, "--name-template", "west", "--namespace", "llm"),
		"every value":         charted(t, "--values", "testdata/values.yaml", "--set-file", "config=testdata/roundhouse.hcl"),
	}
	for folder, values := range variants {
		all[folder], all["chart as "+folder] = kustomized(t, folder), charted(t, values...)
	}
	files, err := filepath.Glob(deploy + "/kubernetes/examples/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = text
	}
	return all
}

// TestTypes holds every object to the types of Kubernetes and the definitions of the
// gateways' resources: no field that is unknown, none that lacks.
func TestTypes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range rendered(t) {
		file := filepath.Join(dir, strings.NewReplacer("/", "-", " ", "-").Replace(name)+".yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	validate := []string{"--version", "1.30", "--local-crds", tools + "/definitions"}
	if _, err := tried(tools+"/kubectl-validate", append(validate, dir)...); err != nil {
		t.Error(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	for _, text := range []string{
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replica: 1, selector: {}, template: {}}\n",
		"apiVersion: inference.networking.k8s.io/v1\nkind: InferencePool\nmetadata: {name: x}\nspec: {targetPorts: [{number: 8000}]}\n",
		"apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: EnvoyExtensionPolicy\nmetadata: {name: x}\nspec: {extProc: [{backendRefs: [{name: x}], processingMode: {request: {body: Duplex}}}]}\n",
	} {
		if err := os.WriteFile(wrong, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := tried(tools+"/kubectl-validate", append(validate, wrong)...); err == nil {
			t.Errorf("what is wrong passes: %s%s", text, out)
		}
	}
}

// TestPods runs what each Deployment runs, with the configuration of its ConfigMap, the
// arguments and the environment, as far as there being no cluster.
func TestPods(t *testing.T) {
	for name, text := range rendered(t) {
		all := parsed(t, text)
		for key, o := range all {
			if !strings.HasPrefix(key, "Deployment ") || at(o, "spec", "template", "spec", "containers", 0, "name") != "roundhouse" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				restricted(t, at(o, "spec", "template", "spec"))
				joined(t, all, o)
				begun(t, all, o)
			})
		}
	}
}

// restricted holds a pod to the restricted profile of pod security.
func restricted(t *testing.T, pod any) {
	t.Helper()
	for _, one := range list(pod, "containers") {
		for _, rule := range []struct {
			got  any
			want string
		}{
			{at(pod, "securityContext", "runAsNonRoot"), "true"},
			{at(pod, "securityContext", "seccompProfile", "type"), "RuntimeDefault"},
			{at(one, "securityContext", "allowPrivilegeEscalation"), "false"},
			{at(one, "securityContext", "readOnlyRootFilesystem"), "true"},
			{at(one, "securityContext", "capabilities"), "map[drop:[ALL]]"},
			{len(list(pod, "hostNetwork", "hostPID")), "0"},
		} {
			if fmt.Sprint(rule.got) != rule.want {
				t.Errorf("a container has %v, want %s", rule.got, rule.want)
			}
		}
	}
	for _, v := range list(pod, "volumes") {
		for kind := range v.(object) {
			if kind != "name" && kind != "configMap" && kind != "emptyDir" && kind != "secret" && kind != "projected" {
				t.Errorf("a volume is a %s", kind)
			}
		}
	}
}

// joined holds what names pods, ports and accounts to what there is of them.
func joined(t *testing.T, all objects, deployment object) {
	t.Helper()
	pod := at(deployment, "spec", "template")
	labels, ports := at(pod, "metadata", "labels").(object), map[any]bool{}
	for _, p := range list(pod, "spec", "containers", 0, "ports") {
		ports[at(p, "name")], ports[at(p, "containerPort")] = true, true
	}
	has := func(key string, selector any) {
		m, _ := selector.(object)
		for k, v := range m {
			if labels[k] != v {
				t.Errorf("%s selects %s=%v, the pods have %v", key, k, v, labels[k])
			}
		}
		if len(m) == 0 {
			t.Errorf("%s selects nothing", key)
		}
	}
	open := func(key string, port any) {
		if !ports[port] {
			t.Errorf("%s names port %v, the container has %v", key, port, ports)
		}
	}
	for key, o := range all {
		switch o["kind"] {
		case "Service":
			has(key, at(o, "spec", "selector"))
			for _, p := range list(o, "spec", "ports") {
				open(key, at(p, "targetPort"))
			}
		case "PodDisruptionBudget", "Deployment":
			has(key, at(o, "spec", "selector", "matchLabels"))
		case "NetworkPolicy":
			has(key, at(o, "spec", "podSelector", "matchLabels"))
			for _, rule := range list(o, "spec", "ingress") {
				for _, p := range list(rule, "ports") {
					open(key, at(p, "port"))
				}
			}
		case "InferencePool":
			picker := all[fmt.Sprint("Service ", at(o, "spec", "endpointPickerRef", "name"))]
			open(key, at(o, "spec", "endpointPickerRef", "port", "number"))
			if picker == nil || !strings.Contains(fmt.Sprint(at(picker, "spec", "ports")), fmt.Sprint("port:", at(o, "spec", "endpointPickerRef", "port", "number"))) {
				t.Errorf("%s: its picker's Service is %v", key, picker)
			}
		case "RoleBinding":
			if all[fmt.Sprint("Role ", at(o, "roleRef", "name"))] == nil || at(o, "subjects", 0, "name") != at(pod, "spec", "serviceAccountName") {
				t.Errorf("%s binds %v to %v", key, at(o, "roleRef"), at(o, "subjects"))
			}
		}
	}
	if all[fmt.Sprint("ServiceAccount ", at(pod, "spec", "serviceAccountName"))] == nil {
		t.Errorf("there is no account %v", at(pod, "spec", "serviceAccountName"))
	}
}

// begun starts the program as the container does.
func begun(t *testing.T, all objects, deployment object) {
	t.Helper()
	pod := at(deployment, "spec", "template", "spec")
	held := all[fmt.Sprint("ConfigMap ", at(pod, "volumes", 0, "configMap", "name"))]
	text, _ := at(held, "data", "roundhouse.hcl").(string)
	file := filepath.Join(t.TempDir(), "roundhouse.hcl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mounted := fmt.Sprint(at(pod, "containers", 0, "volumeMounts", 0, "mountPath"), "/roundhouse.hcl")
	var args, env []string
	for _, a := range list(pod, "containers", 0, "args") {
		args = append(args, strings.ReplaceAll(a.(string), mounted, file))
	}
	for _, e := range list(pod, "containers", 0, "env") {
		value, _ := at(e, "value").(string)
		env = append(env, fmt.Sprint(at(e, "name"), "=", cmp.Or(value, "a token")))
	}
	for _, run := range []struct {
		args []string
		want string
	}{
		{[]string{"validate", file}, ""},
		{args, "this is no pod of a Kubernetes cluster"},
	} {
		cmd := exec.Command(built.Path(t, "roundhouse"), run.args...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if (err == nil) != (run.want == "") || !strings.Contains(string(out), run.want) || strings.Contains(string(out), "unknown flag") {
			t.Errorf("%v: %v\n%s%s", run.args, err, out, text)
		}
	}
}

// TestValues refuses values of the chart that are unknown or make no sense.
func TestValues(t *testing.T) {
	runs(t, tools+"/helm", "lint", "--strict", "--kube-version", "1.34.0", deploy+"/helm/roundhouse")
	for set, want := range map[string]string{
		"replcas=3":         "replcas",
		"replicas=0":        "replicas",
		"rotation.every=1h": "every",
		"pool.port=70000":   "port",
		"picker.enabled=true,pool.selector=app in (vllm)": "an InferencePool selects by equality",
	} {
		if out, err := tried(tools+"/helm", chartArgs("--set", set)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q\n%s", set, err, want, out)
		}
	}
}
