// Command families renders the chat templates of model families and compares
// with what transformers makes of them. The templates are not ours and not in
// this repository: families.py says from which public package they come, and
// digests.json holds digests of the expected texts only.
//
//	go run ./worker/template/families -templates FOLDER
//
// With -show, it prints one rendering: -show "Qwen-QwQ-32B.jinja calls".
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"roundhouse/worker/template"
)

// expected is digests.json.
type expected struct {
	Conversations []struct {
		Name string          `json:"name"`
		Vars json.RawMessage `json:"vars"`
	} `json:"conversations"`
	Families map[string]struct {
		Template string            `json:"template"`
		Results  map[string]string `json:"results"`
	} `json:"families"`
}

func main() {
	folder := flag.String("templates", "", "folder with the .jinja files")
	digests := flag.String("digests", "worker/template/families/digests.json", "the expected digests")
	show := flag.String("show", "", `print one rendering: "FILE CONVERSATION"`)
	flag.Parse()
	if err := run(*folder, *digests, *show); err != nil {
		fmt.Fprintln(os.Stderr, "families:", err)
		os.Exit(1)
	}
}

func run(folder, digests, show string) error {
	data, err := os.ReadFile(digests)
	if err != nil {
		return err
	}
	var want expected
	if err := json.Unmarshal(data, &want); err != nil {
		return err
	}
	var names []string
	for name := range want.Families {
		names = append(names, name)
	}
	slices.Sort(names)
	same, differ := 0, 0
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		if got := digest(string(source)); got != want.Families[name].Template {
			return fmt.Errorf("%s is another version of the template", name)
		}
		for _, c := range want.Conversations {
			text, err := render(string(source), c.Vars)
			if show == name+" "+c.Name {
				fmt.Print(text)
				return err
			}
			if verdict(text, err) == want.Families[name].Results[c.Name] {
				same++
				continue
			}
			differ++
			fmt.Printf("%s, %s: %s; want %s %v\n", name, c.Name, verdict(text, err), want.Families[name].Results[c.Name], err)
		}
	}
	fmt.Printf("%d templates: %d renderings agree, %d differ\n", len(names), same, differ)
	if differ > 0 {
		return errors.New("some renderings differ")
	}
	return nil
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:16]
}

// verdict is what digests.json says of a rendering.
func verdict(text string, err error) string {
	var raised *template.RaisedError
	switch {
	case errors.As(err, &raised):
		return "raised"
	case err != nil:
		return "error"
	}
	return digest(text)
}

// now is the time that families.py renders at.
var now = time.Date(2026, 3, 7, 16, 5, 9, 0, time.UTC)

func render(source string, vars json.RawMessage) (string, error) {
	t, err := template.Parse(source)
	if err != nil {
		return "", err
	}
	v, err := template.FromJSON(vars)
	if err != nil {
		return "", err
	}
	all := map[string]any{}
	d := v.(*template.Dict)
	for _, k := range d.Keys() {
		x, _ := d.Get(k)
		if s, ok := x.(string); ok && strings.HasSuffix(k, "_token") {
			x = template.Literal(s)
		}
		all[k] = x
	}
	return t.RenderString(all, template.Limits{Now: now})
}
