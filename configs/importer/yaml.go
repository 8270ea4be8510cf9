package importer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// service is what is read of a compose service. Fields that are not here
// have no meaning for a worker.
type service struct {
	name string

	Image         string      `yaml:"image"`
	Build         yaml.Node   `yaml:"build"`
	ContainerName string      `yaml:"container_name"`
	Entrypoint    words       `yaml:"entrypoint"`
	Command       words       `yaml:"command"`
	Environment   pairs       `yaml:"environment"`
	EnvFile       files       `yaml:"env_file"`
	Volumes       []volume    `yaml:"volumes"`
	Ports         []yaml.Node `yaml:"ports"`
	ShmSize       string      `yaml:"shm_size"`
	NetworkMode   string      `yaml:"network_mode"`
	Networks      files       `yaml:"networks"`
	IPC           string      `yaml:"ipc"`
	Init          bool        `yaml:"init"`
	User          string      `yaml:"user"`
	Ulimits       yaml.Node   `yaml:"ulimits"`
	Labels        pairs       `yaml:"labels"`
	Privileged    bool        `yaml:"privileged"`
	Devices       []yaml.Node `yaml:"devices"`
	GroupAdd      []string    `yaml:"group_add"`
	WorkingDir    string      `yaml:"working_dir"`
	Healthcheck   yaml.Node   `yaml:"healthcheck"`
	Extends       yaml.Node   `yaml:"extends"`
	Scale         int         `yaml:"scale"`
	Deploy        struct {
		Replicas  int `yaml:"replicas"`
		Resources struct {
			Reservations struct {
				Devices []struct {
					Driver string   `yaml:"driver"`
					Count  string   `yaml:"count"`
					IDs    []string `yaml:"device_ids"`
				} `yaml:"devices"`
			} `yaml:"reservations"`
			Limits yaml.Node `yaml:"limits"`
		} `yaml:"resources"`
	} `yaml:"deploy"`
	Profiles []string `yaml:"profiles"`
	Confined struct {
		CapAdd      []string `yaml:"cap_add"`
		SecurityOpt []string `yaml:"security_opt"`
		PidsLimit   int64    `yaml:"pids_limit"`
		MemLimit    string   `yaml:"mem_limit"`
		ExtraHosts  hosts    `yaml:"extra_hosts"`
	} `yaml:",inline"`
	Rest map[string]yaml.Node `yaml:",inline"`
}

// words is a command: a list, or a line that a shell would split.
type words []string

func (w *words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		split, err := split(n.Value)
		*w = split
		return err
	}
	return n.Decode((*[]string)(w))
}

// files is one string, a list of strings, or a map whose keys count.
type files []string

func (f *files) UnmarshalYAML(n *yaml.Node) error {
	switch n.Kind {
	case yaml.ScalarNode:
		*f = files{n.Value}
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			*f = append(*f, n.Content[i].Value)
		}
	default:
		for _, item := range n.Content {
			if item.Kind == yaml.ScalarNode {
				*f = append(*f, item.Value)
			}
		}
	}
	return nil
}

// pairs is a map of strings, or a list of NAME=value.
type pairs map[string]string

func (p *pairs) UnmarshalYAML(n *yaml.Node) error {
	*p = pairs{}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			(*p)[n.Content[i].Value] = n.Content[i+1].Value
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			name, value, _ := strings.Cut(item.Value, "=")
			(*p)[name] = value
		}
	}
	return nil
}

// volume is "source:target[:mode]", whichever way it was written.
type volume string

func (v *volume) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*v = volume(n.Value)
		return nil
	}
	var long struct {
		Source   string `yaml:"source"`
		Target   string `yaml:"target"`
		ReadOnly bool   `yaml:"read_only"`
	}
	if err := n.Decode(&long); err != nil {
		return err
	}
	*v = volume(long.Source + ":" + long.Target)
	if long.ReadOnly {
		*v += ":ro"
	}
	return nil
}

// variable finds compose's $NAME, ${NAME}, ${NAME:-default}, ${NAME?error},
// and $$ for one dollar sign.
var variable = regexp.MustCompile(`\$(?:\$|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-?+])([^}]*))?\})`)

// interpolate puts variables into every value below n, as compose does.
func interpolate(n *yaml.Node, lookup func(string) (string, bool), missing func(string)) {
	if n.Kind == yaml.ScalarNode {
		n.Value = variable.ReplaceAllStringFunc(n.Value, func(found string) string {
			if found == "$$" {
				return "$"
			}
			m := variable.FindStringSubmatch(found)
			value, ok := lookup(m[1] + m[2])
			useDefault := !ok || strings.HasPrefix(m[3], ":") && value == ""
			switch strings.TrimPrefix(m[3], ":") {
			case "-":
				if useDefault {
					return m[4]
				}
			case "+":
				if useDefault {
					return ""
				}
				return m[4]
			default:
				if !ok {
					missing(m[1] + m[2])
				}
			}
			return value
		})
		if n.Tag == "!!str" && n.Style == 0 {
			n.Tag = "" // a plain ${PORT} may be a number
		}
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			continue // keys have no variables
		}
		interpolate(child, lookup, missing)
	}
}

// dotenv reads NAME=value lines.
func dotenv(text []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		out[strings.TrimSpace(name)] = value
	}
	return out
}

var memory = regexp.MustCompile(`(?i)^(\d+)\s*([kmgt]?)i?b?$`)

// composeSize turns compose's "32gb", which is binary, into our "32GiB".
func composeSize(s string) (string, error) {
	m := memory.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return "", fmt.Errorf("%q is not a size", s)
	}
	if m[2] == "" {
		return m[1] + "B", nil
	}
	return m[1] + strings.ToUpper(m[2]) + "iB", nil
}

// ulimits reads name: N and name: {soft: N, hard: N}; the hard one counts.
func ulimits(n *yaml.Node) (map[string]string, error) {
	if n.Kind != yaml.MappingNode {
		return nil, nil
	}
	out := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		value := n.Content[i+1].Value
		if n.Content[i+1].Kind == yaml.MappingNode {
			var both struct {
				Hard string `yaml:"hard"`
			}
			if err := n.Content[i+1].Decode(&both); err != nil {
				return nil, err
			}
			value = both.Hard
		}
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return nil, fmt.Errorf("line %d: ulimit %s: %q is not a number", n.Content[i].Line, n.Content[i].Value, value)
		}
		out[n.Content[i].Value] = value
	}
	return out, nil
}
