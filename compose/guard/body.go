package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxBody bounds what is read of a request's body.
const maxBody = 1 << 20

// object is a JSON object of a create body.
type object = map[string]any

// rule says why a field may not have a value; nil means that it may.
type rule func(value any) error

// fields are the rules of an object. A field that is not among them must be
// empty.
type fields map[string]rule

// anything lets a field pass: it describes the container's inside only.
func anything(any) error { return nil }

// create checks a create body and writes it anew.
func (p *Policy) create(body []byte) ([]byte, error) {
	root, err := decodeObject(body)
	if err != nil {
		return nil, err
	}
	top := fields{
		"Image": p.image, "Cmd": anything, "Entrypoint": anything, "Env": anything, "WorkingDir": anything,
		"Labels": p.labels, "User": anything, "Hostname": anything, "ExposedPorts": anything, "StopSignal": anything,
		"StopTimeout": anything, "Healthcheck": anything, "Tty": anything, "OpenStdin": anything,
		"AttachStdin": anything, "AttachStdout": anything, "AttachStderr": anything, "StdinOnce": anything,
		"HostConfig": p.host, "NetworkingConfig": p.networking,
	}
	if err := top.check("", root); err != nil {
		return nil, err
	}
	if root["Labels"] == nil {
		return nil, fmt.Errorf("the label %s is missing", LabelInstance)
	}
	if _, ok := root["Image"].(string); !ok {
		return nil, fmt.Errorf("the Image is missing")
	}
	return json.Marshal(root)
}

// update checks the body of an update.
func update(body []byte) ([]byte, error) {
	root, err := decodeObject(body)
	if err != nil {
		return nil, err
	}
	if err := (fields{"RestartPolicy": noRestart}).check("", root); err != nil {
		return nil, err
	}
	return json.Marshal(root)
}

// decodeObject reads one JSON object in which no name is there twice, not
// even in another case.
func decodeObject(body []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the JSON object")
	}
	root, ok := v.(object)
	if !ok {
		return nil, fmt.Errorf("the body is not a JSON object")
	}
	return root, nil
}

const maxDepth = 16

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("the body is not JSON: %w", err)
	}
	switch t {
	case json.Delim('{'):
		out := object{}
		folded := map[string]bool{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, fmt.Errorf("the body is not JSON: %w", err)
			}
			name := key.(string) // keys are strings, or Token has failed
			if folded[strings.ToLower(name)] {
				return nil, fmt.Errorf("%q is there twice", name)
			}
			folded[strings.ToLower(name)] = true
			if out[name], err = decodeValue(d, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return out, err
	case json.Delim('['):
		out := []any{}
		for d.More() {
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err := d.Token()
		return out, err
	}
	return t, nil
}

// check holds an object to its rules.
func (f fields) check(where string, o object) error {
	for name, value := range o {
		if empty(value) {
			continue
		}
		if rule, ok := f[name]; !ok {
			return fmt.Errorf("%s%s may not be set", where, name)
		} else if err := rule(value); err != nil {
			return fmt.Errorf("%s%s: %w", where, name, err)
		}
	}
	return nil
}

// empty says whether a value is what a client sends for a field that nobody
// has set.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case object:
		for _, inner := range v {
			if !empty(inner) {
				return false
			}
		}
		return true
	}
	return false
}

func (p *Policy) image(v any) error {
	name, ok := v.(string)
	if !ok || !slices.Contains(p.Images, name) {
		return fmt.Errorf("%q is no image of the configuration", v)
	}
	return nil
}

func (p *Policy) labels(v any) error {
	labels, ok := v.(object)
	if !ok || labels[LabelInstance] != p.Instance {
		return fmt.Errorf("%s is not %q", LabelInstance, p.Instance)
	}
	return nil
}

// host checks HostConfig, where the host itself is at stake.
func (p *Policy) host(v any) error {
	o, ok := v.(object)
	if !ok {
		return fmt.Errorf("not an object")
	}
	return fields{
		"Binds": p.binds, "Mounts": p.mounts, "NetworkMode": p.network, "IpcMode": oneOf(append([]string{"private", "none", "shareable"}, p.IPC...)),
		"RestartPolicy": noRestart, "Devices": p.devices, "DeviceRequests": anything, "ShmSize": anything, "Ulimits": anything,
		"CpusetCpus": anything, "CpusetMems": anything, "Memory": anything, "MemorySwap": anything, "MemorySwappiness": anything,
		"NanoCpus": anything, "CpuShares": anything, "PidsLimit": anything, "Init": anything, "LogConfig": anything,
		"PortBindings": loopbackOnly, "GroupAdd": anything, "CapDrop": anything, "ReadonlyRootfs": anything, "OomScoreAdj": notNegative,
		"MaskedPaths": anything, "ReadonlyPaths": anything, "ConsoleSize": anything, "Tmpfs": anything, "AutoRemove": anything,
		"SecurityOpt": oneOfEach("no-new-privileges", "no-new-privileges:true"), "CgroupnsMode": oneOf([]string{"private"}),
	}.check("HostConfig.", o)
}

func (p *Policy) networking(v any) error {
	o, ok := v.(object)
	if !ok {
		return fmt.Errorf("not an object")
	}
	return fields{"EndpointsConfig": func(v any) error {
		endpoints, ok := v.(object)
		if !ok {
			return fmt.Errorf("not an object")
		}
		for name := range endpoints {
			if !slices.Contains(p.Networks, name) {
				return fmt.Errorf("%q is no network of the configuration", name)
			}
		}
		return nil
	}}.check("NetworkingConfig.", o)
}

func (p *Policy) network(v any) error {
	if err := oneOf([]string{"none", "bridge", "default"})(v); err == nil {
		return nil
	}
	return oneOf(slices.Concat(p.NetworkModes, p.Networks))(v)
}

// binds holds bind mounts to those that the configuration names, to the letter.
func (p *Policy) binds(v any) error {
	return eachText(v, func(bind string) error {
		if !slices.Contains(p.Volumes, bind) {
			return fmt.Errorf("%q is no volume of the configuration", bind)
		}
		return nil
	})
}

func (p *Policy) mounts(v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("not a list")
	}
	for _, item := range list {
		o, ok := item.(object)
		if !ok {
			return fmt.Errorf("not a list of objects")
		}
		source, _ := o["Source"].(string)
		target, _ := o["Target"].(string)
		if o["Type"] == "tmpfs" {
			continue
		}
		whole := source + ":" + target
		if o["Type"] != "bind" || !slices.Contains(p.Volumes, whole) && !(o["ReadOnly"] == true && slices.Contains(p.Volumes, whole+":ro")) {
			return fmt.Errorf("%s is no volume of the configuration", whole)
		}
		if err := (fields{"Type": anything, "Source": anything, "Target": anything, "ReadOnly": anything}).check("", o); err != nil {
			return err
		}
	}
	return nil
}

var gpuNode = regexp.MustCompile(`^/dev/dri/((card|renderD)[0-9]+|by-path/pci-[0-9a-f:.]+-(card|render))$`)

// devices lets GPUs pass, at their own paths.
func (p *Policy) devices(v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("not a list")
	}
	for _, item := range list {
		o, ok := item.(object)
		if !ok {
			return fmt.Errorf("not a list of objects")
		}
		for _, name := range []string{"PathOnHost", "PathInContainer"} {
			node, _ := o[name].(string)
			if path.Clean(node) != node || !gpuNode.MatchString(node) {
				return fmt.Errorf("%s %q is no GPU's node", name, node)
			}
		}
	}
	return nil
}

// noRestart: a worker is started by the supervisor alone; an engine that
// restarts it would put a drained worker back.
func noRestart(v any) error {
	o, ok := v.(object)
	if !ok || o["Name"] != nil && o["Name"] != "" && o["Name"] != "no" {
		return fmt.Errorf("it is \"no\": the supervisor restarts workers")
	}
	return nil
}

// loopbackOnly keeps a worker's port off the network, which is the door's.
func loopbackOnly(v any) error {
	ports, ok := v.(object)
	if !ok {
		return fmt.Errorf("not an object")
	}
	for port, bindings := range ports {
		list, _ := bindings.([]any)
		for _, item := range list {
			o, _ := item.(object)
			if o["HostIp"] != "127.0.0.1" && o["HostIp"] != "::1" {
				return fmt.Errorf("%s is not published on 127.0.0.1", port)
			}
		}
	}
	return nil
}

func notNegative(v any) error {
	if n, ok := v.(json.Number); !ok || strings.HasPrefix(n.String(), "-") {
		return fmt.Errorf("it is 0 or more")
	}
	return nil
}

func oneOf(words []string) rule {
	return func(v any) error {
		if text, ok := v.(string); !ok || !slices.Contains(words, text) {
			return fmt.Errorf("%q is not in the configuration", v)
		}
		return nil
	}
}

func oneOfEach(words ...string) rule {
	return func(v any) error {
		return eachText(v, func(text string) error { return oneOf(words)(text) })
	}
}

func eachText(v any, check func(string) error) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("not a list")
	}
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			return fmt.Errorf("not a list of strings")
		}
		if err := check(text); err != nil {
			return err
		}
	}
	return nil
}
