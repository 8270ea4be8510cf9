package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxConfigFile bounds the file that --config names.
const maxConfigFile = 1 << 20

// configured reads the file that --config names: its flags as arguments, its
// name, and args without the flag.
func configured(args []string) (filed []string, file string, rest []string, err error) {
	for i := 0; i < len(args); i++ {
		name, inline, has := strings.Cut(args[i], "=")
		if name != "--config" {
			rest = append(rest, args[i])
			continue
		}
		if !has {
			i++
			if i == len(args) {
				return nil, "", nil, fmt.Errorf("--config needs a file")
			}
			inline = args[i]
		}
		if file != "" {
			return nil, "", nil, fmt.Errorf("--config is given twice: %s and %s", file, inline)
		}
		file = inline
	}
	if file == "" {
		return nil, "", rest, nil
	}
	filed, err = readConfigFile(file)
	if err != nil {
		return nil, "", nil, fmt.Errorf("--config %s: %w", file, err)
	}
	return filed, "--config " + file, rest, nil
}

// readConfigFile turns a file of flags into arguments, as vLLM does: a switch
// that is false is its --no- form, a list is several values, a mapping JSON.
func readConfigFile(file string) ([]string, error) {
	if !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(file)) {
		return nil, fmt.Errorf("want a file whose name ends in .yaml or .yml")
	}
	if st, err := os.Stat(file); err == nil && st.Size() > maxConfigFile {
		return nil, fmt.Errorf("%d bytes are no file of flags", st.Size())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: want lines of the form flag: value", root.Line)
	}
	var out []string
	for i := 0; i < len(root.Content); i += 2 {
		args, err := configLine(root.Content[i].Value, root.Content[i+1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", root.Content[i].Line, err)
		}
		out = append(out, args...)
	}
	return out, nil
}

// configLine is one flag of the file as arguments.
func configLine(name string, n *yaml.Node) ([]string, error) {
	flag := "--" + name
	spec, _, err := findFlag("--" + strings.ReplaceAll(name, "_", "-"))
	switch {
	case err != nil:
		return nil, err
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode && spec.takes == takesJSON:
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		text, err := json.Marshal(v)
		return []string{flag + "=" + string(text)}, err
	case n.Kind == yaml.SequenceNode:
		args := []string{flag}
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("%s: want values in the list", name)
			}
			args = append(args, item.Value)
		}
		if len(args) == 1 {
			return nil, nil
		}
		return args, nil
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil, nil
	case n.Kind == yaml.ScalarNode && spec.takes == takesSwitch:
		on, ok := yamlSwitches[strings.ToLower(n.Value)]
		if !ok {
			return nil, fmt.Errorf("%s is %q; want true or false", name, n.Value)
		}
		return []string{flag + "=" + on}, nil
	case n.Kind == yaml.ScalarNode:
		return []string{flag + "=" + n.Value}, nil
	}
	return nil, fmt.Errorf("%s: want a value, a list or a mapping", name)
}

// yamlSwitches are YAML's words of what is on or off.
var yamlSwitches = map[string]string{"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}
