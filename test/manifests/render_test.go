//go:build manifests

package manifests

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	tools  = "../../build/manifests"
	deploy = "../../deploy"
)

// object is an object of a cluster.
type object = map[string]any

// objects are objects by kind and name.
type objects map[string]object

// runs runs a program, and returns what it prints.
func runs(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	out, err := tried(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tried runs a program; its error has all that it says.
func tried(name string, args ...string) ([]byte, error) {
	var said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "HOME="+os.TempDir()), &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, &said)
	}
	return out, err
}

// kustomized is what kustomize makes of a folder of deploy/kubernetes.
func kustomized(t *testing.T, folder string) []byte {
	t.Helper()
	return runs(t, tools+"/kustomize", "build", filepath.Join(deploy, "kubernetes", folder))
}

// charted is what helm makes of the chart.
func charted(t *testing.T, args ...string) []byte {
	t.Helper()
	return runs(t, tools+"/helm", chartArgs(args...)...)
}

func chartArgs(args ...string) []string {
	return append([]string{"template", "--name-template", "roundhouse", deploy + "/helm/roundhouse", "--kube-version", "1.34.0"}, args...)
}

// parsed reads objects, and refuses two of one name.
func parsed(t *testing.T, text []byte) objects {
	t.Helper()
	all := objects{}
	for docs := yaml.NewDecoder(bytes.NewReader(text)); ; {
		o := object{}
		if err := docs.Decode(&o); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(o) == 0 {
			continue
		}
		key := fmt.Sprint(o["kind"], " ", at(o, "metadata", "name"))
		if all[key] != nil {
			t.Errorf("%s stands twice", key)
		}
		all[key] = o
	}
}

// at follows a path of an object's fields and places of lists.
func at(o any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := o.(object)
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

// list is a list among an object's fields.
func list(o any, path ...any) []any {
	l, _ := at(o, path...).([]any)
	return l
}

// hashed is the end of a ConfigMap's name, which kustomize makes of what it holds.
var hashed = regexp.MustCompile(`^(roundhouse)-[a-z0-9]{10}$`)

// plain takes out what only one of kustomize and helm writes: how a change of the
// configuration rolls the pods, and helm's own labels.
func plain(o any) any {
	switch o := o.(type) {
	case object:
		for _, own := range []string{"helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "checksum/config"} {
			delete(o, own)
		}
		if m, ok := o["annotations"].(object); ok && len(m) == 0 {
			delete(o, "annotations")
		}
		for k, v := range o {
			o[k] = plain(v)
			if m, ok := o[k].(object); ok && k == "annotations" && len(m) == 0 {
				delete(o, k)
			}
		}
	case []any:
		for i := range o {
			o[i] = plain(o[i])
		}
	case string:
		return hashed.ReplaceAllString(o, "$1")
	}
	return o
}

// differences are the paths at which two values differ.
func differences(path string, a, b any) (all []string) {
	ma, isMap := a.(object)
	mb, both := b.(object)
	if isMap && both {
		keys := map[string]bool{}
		for _, m := range []object{ma, mb} {
			for k := range m {
				keys[k] = true
			}
		}
		for k := range keys {
			all = append(all, differences(path+"/"+k, ma[k], mb[k])...)
		}
		slices.Sort(all)
		return all
	}
	la, isList := a.([]any)
	lb, both := b.([]any)
	if isList && both && len(la) == len(lb) {
		for i := range la {
			all = append(all, differences(fmt.Sprint(path, "/", i), la[i], lb[i])...)
		}
		return all
	}
	if fmt.Sprintf("%T %v", a, a) != fmt.Sprintf("%T %v", b, b) {
		all = append(all, fmt.Sprintf("%s: kustomize has %v, helm %v", path, a, b))
	}
	return all
}
