package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"

	"roundhouse/configs"
	"roundhouse/kube"
	"roundhouse/kube/kubetest"
)

// deployed is the folder of the manifests. test/manifests holds what kustomize and helm
// make of them.
const deployed = "../../deploy/kubernetes"

// manifests reads the objects of some folders of deploy/kubernetes, by kind and name.
func manifests(t *testing.T, folders ...string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(deployed, folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for docs := yaml.NewDecoder(bytes.NewReader(text)); ; {
				var o any
				if err := docs.Decode(&o); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				if m, ok := o.(map[string]any); ok { // a list patches objects
					all[fmt.Sprint(m["kind"], " ", at(m, "metadata", "name"))] = m
				}
			}
		}
	}
	return all
}

// at follows a path of an object's fields.
func at(o any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := o.(map[string]any)
			o = m[p]
		case int:
			l, _ := o.([]any)
			if p >= len(l) {
				return nil
			}
			o = l[p]
		}
	}
	return o
}

// variant is a way to deploy doors: the folders of its objects, the last of which has the
// configuration.
type variant struct {
	folders []string
}

var variants = map[string]variant{
	"base":     {folders: []string{"base"}},
	"picker":   {folders: []string{"base", "overlays/picker"}},
	"rotation": {folders: []string{"base", "overlays/rotation"}},
}

// config reads the variant's configuration as the program in the pod would.
func (v variant) config(t *testing.T) *configs.Config {
	t.Helper()
	file := filepath.Join(deployed, v.folders[len(v.folders)-1], "roundhouse.hcl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Parse(file, text, func(name string) (string, bool) { return "a token", name == "ROUNDHOUSE_ADMIN_TOKEN" })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestManifestRoles has the Roles of each variant grant just what its configuration takes.
func TestManifestRoles(t *testing.T) {
	for name, v := range variants {
		t.Run(name, func(t *testing.T) {
			granted, all := map[string]bool{}, manifests(t, v.folders...)
			for _, o := range all {
				if o["kind"] == "Role" {
					grant(granted, o)
					role := at(o, "metadata", "name").(string)
					binding := all["RoleBinding "+role]
					if at(binding, "roleRef", "name") != role || at(binding, "subjects", 0, "name") != "roundhouse" || all["ServiceAccount roundhouse"] == nil {
						t.Errorf("Role %s is bound as %v", role, binding)
					}
				}
			}
			p := v.config(t).Pools[0]
			same(t, granted, rights(kube.Rights(p.Pods.InferencePool != "", p.Pods.Rotates)))
		})
	}
}

// grant notes the rights of a Role.
func grant(granted map[string]bool, role map[string]any) {
	rules, _ := role["rules"].([]any)
	for _, r := range rules {
		for _, group := range at(r, "apiGroups").([]any) {
			for _, resource := range at(r, "resources").([]any) {
				for _, verb := range at(r, "verbs").([]any) {
					granted[fmt.Sprint(verb, " ", resource, ".", group)] = true
				}
			}
		}
	}
}

// rights are Rights as a set of words.
func rights(all []kube.Right) map[string]bool {
	set := map[string]bool{}
	for _, r := range all {
		name := r.Resource
		if r.Subresource != "" {
			name += "/" + r.Subresource
		}
		set[r.Verb+" "+name+"."+r.Group] = true
	}
	return set
}

// asked are the rights that requests so far have taken.
func asked(api *kubetest.Server) map[string]bool {
	set := map[string]bool{}
	for _, r := range api.Asked() {
		set[r.Verb+" "+r.Resource+"."+r.Group] = true
	}
	return set
}

// same holds a set of rights to another.
func same(t *testing.T, got, want map[string]bool) {
	t.Helper()
	for _, all := range []map[string]bool{got, want} {
		for r := range all {
			if !got[r] || !want[r] {
				t.Errorf("%s: got %v, want %v", r, got[r], want[r])
			}
		}
	}
}

// TestManifestPods has each variant's Deployment run a command of the program with flags
// that it takes, and with the environment that the configuration asks for.
func TestManifestPods(t *testing.T) {
	for name, v := range variants {
		t.Run(name, func(t *testing.T) {
			all := manifests(t, v.folders...)
			one := at(all["Deployment roundhouse"], "spec", "template", "spec", "containers", 0)
			var args []string
			for _, a := range at(one, "args").([]any) {
				args = append(args, a.(string))
			}
			cmd, rest, err := root(&console{}).Find(args)
			if err != nil || cmd.Name() != args[0] {
				t.Fatal(args, err)
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%v: %v", args, err)
			}
			if picks := cmd.Name() == "picker"; picks != (all["InferencePool chat"] != nil) {
				t.Errorf("%v, and the InferencePool is %v", args, all["InferencePool chat"])
			}
			if cfg := v.config(t); !cfg.Pools[0].OfPods() || cfg.Door.Listen != ":8000" || cfg.Admin.Listen != ":8001" {
				t.Errorf("its configuration: %+v", cfg)
			}
		})
	}
}
