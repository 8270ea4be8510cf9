package guard

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	"github.com/docker/go-units"

	"roundhouse/supervisor/moby"
)

// What would give a worker the host, another's files, GPUs or network, or the network
// its port, does not pass, however it is spelt.
func TestCreate(t *testing.T) {
	g := guardOf(t, "/nowhere")
	for _, host := range []string{
		`{"Binds":["/models:/models:ro"],"NetworkMode":"host","IpcMode":"host","Privileged":false,"CapAdd":null,"ShmSize":34359738368}`,
		`{"Devices":[{"PathOnHost":"/dev/dri/renderD128","PathInContainer":"/dev/dri/renderD128","CgroupPermissions":"rw"}],"RestartPolicy":{"Name":"no","MaximumRetryCount":0}}`,
		`{"Devices":[{"PathOnHost":"/dev/dri/by-path/pci-0000:18:00.0-card","PathInContainer":"/dev/dri/by-path/pci-0000:18:00.0-card","CgroupPermissions":"rw"}],"GroupAdd":["44"]}`,
		`{"PortBindings":{"8000/tcp":[{"HostIp":"127.0.0.1","HostPort":"8008"}]},"Ulimits":[{"Name":"memlock","Soft":-1,"Hard":-1}]}`,
		`{"LogConfig":{"Type":"json-file","Config":{"max-size":"64m","max-file":"4"}},"MemorySwappiness":-1,"OomKillDisable":false,"Dns":[]}`,
		`{"memory":0,"bindſ":["/models:/models:ro"]}`, // another spelling of a field is the field
	} {
		if _, err := made(t, g, "old", body(host)); err != nil {
			t.Errorf("refused %s: %v", host, err)
		}
	}
	const device = `"PathInContainer":"/dev/dri/card0","CgroupPermissions":"rw"`
	for host, want := range map[string]string{
		`{"Privileged":true}`:                    "HostConfig.Privileged may not be set",
		`{"privileged":true}`:                    "HostConfig.Privileged may not be set",
		`{"Privileged":false,"privileged":true}`: "there twice",
		`{"Devices":[{"PathOnHost":"/dev/dri/card0",` + device + `,"PathOnHoſt":"/dev/sda"}]}`: "there twice",
		`{"Devices":[{"PathOnHoſt":"/dev/sda",` + device + `}]}`:                               "not given under its own name",
		`{"Deviceſ":[{"PathOnHost":"/dev/sda","PathInContainer":"/dev/sda"}]}`:                 "Devices",
		`{"Devices":[],"Deviceſ":[]}`:                                                          "there twice",
		`{"MaskedPaths":[]}`:                                                                   "HostConfig.MaskedPaths may not be set",
		`{"ReadonlyPaths":[]}`:                                                                 "HostConfig.ReadonlyPaths may not be set",
		`{"MasKedPaths":[]}`:                                                                   "HostConfig.MaskedPaths may not be set",
		`{"MaskedPaths":["/x"]}`:                                                               "HostConfig.MaskedPaths may not be set",
		`{"PidMode":"host"}`:                                                                   "PidMode may not be set",
		`{"UTSMode":"host"}`:                                                                   "UTSMode may not be set",
		`{"CapAdd":["SYS_ADMIN"]}`:                                                             "none of those that an engine uses",
		`{"UsernsMode":"host"}`:                                                                "UsernsMode may not be set",
		`{"VolumesFrom":["other"]}`:                                                            "VolumesFrom may not be set",
		`{"SecurityOpt":["seccomp=unconfined"]}`:                                               "own seccomp profile holds",
		`{"CgroupParent":"/"}`:                                                                 "CgroupParent may not be set",
		`{"CgroupnsMode":"host"}`:                                                              "CgroupnsMode may not be set",
		`{"Cgroup":"container:x"}`:                                                             "Cgroup may not be set",
		`{"Runtime":"other"}`:                                                                  "Runtime may not be set",
		`{"Sysctls":{"kernel.core_pattern":"|/x"}}`:                                            "Sysctls may not be set",
		`{"DeviceCgroupRules":["b *:* rwm"]}`:                                                  "DeviceCgroupRules may not be set",
		`{"Annotations":{"run.oci.keep_original_groups":""}}`:                                  "Annotations may not be set",
		`{"StorageOpt":{"size":"1T"}}`:                                                         "StorageOpt may not be set",
		`{"VolumeDriver":"x"}`:                                                                 "VolumeDriver may not be set",
		`{"ContainerIDFile":"/x"}`:                                                             "ContainerIDFile may not be set",
		`{"PublishAllPorts":true}`:                                                             "PublishAllPorts may not be set",
		`{"Links":["database"]}`:                                                               "Links may not be set",
		`{"ExtraHosts":["registry:10.0.0.1"]}`:                                                 "not the configuration's",
		`{"OomScoreAdj":-1000}`:                                                                "OomScoreAdj may not be set",
		`{"OomKillDisable":true}`:                                                              "OomKillDisable may not be set",
		`{"Unheard":1}`:                                                                        `unknown field "Unheard"`,
		`{"Binds":["/:/host"]}`:                                                                "no volume of",
		`{"Binds":["/models:/models"]}`:                                                        "no volume of", // not read-only
		`{"Binds":["/models/../etc:/models:ro"]}`:                                              "no volume of",
		`{"Binds":["/chat:/chat"]}`:                                                            "no volume of", // another pool's
		`{"Mounts":[{"Type":"bind","Source":"/","Target":"/x"}]}`:                              "Mounts may not be set",
		`{"Tmpfs":{"/x":""}}`:                                                                  "Tmpfs may not be set",
		`{"NetworkMode":"container:other"}`:                                                    "no network of the pool",
		`{"NetworkMode":"roundhouse"}`:                                                         "no network of the pool", // another pool's
		`{"IpcMode":"container:other"}`:                                                        "not the configuration's",
		`{"IpcMode":"shareable"}`:                                                              "not the configuration's",
		`{"Devices":[{"PathOnHost":"/dev/sda",` + device + `}]}`:                               "not given under its own name",
		`{"Devices":[{"PathOnHost":"/dev/kmsg","PathInContainer":"/dev/kmsg","CgroupPermissions":"rw"}]}`:            "no GPU's node",
		`{"Devices":[{"PathOnHost":"/dev/dri/../sda","PathInContainer":"/dev/dri/../sda"}]}`:                         "not given under its own name",
		`{"Devices":[{"PathOnHost":"/dev/dri/card0","PathInContainer":"/dev/dri/card0","CgroupPermissions":"rwm"}]}`: `not "rw"`,
		`{"Devices":[{"PathOnHost":"/dev/dri/card1","PathInContainer":"/dev/dri/card1","CgroupPermissions":"rw"}]}`:  "0000:4b:00.0, which is not vllm/old's",
		`{"Devices":[{}]}`: "not given under its own name",
		`{"DeviceRequests":[{"Driver":"nvidia","Count":-1,"Capabilities":[["gpu"]]}]}`:                  "not GPUs of NVIDIA's by their names",
		`{"DeviceRequests":[{"Driver":"cdi","DeviceIDs":["nvidia.com/gpu=all"]}]}`:                      "not GPUs of NVIDIA's by their names",
		`{"DeviceRequests":[{"Driver":"nvidia","DeviceIDs":["all"],"Capabilities":[["gpu"]]}]}`:         "the GPU all is not vllm/old's",
		`{"DeviceRequests":[{"Driver":"nvidia","DeviceIDs":["GPU-0a"],"Capabilities":[["gpu"]]}]}`:      "the GPU GPU-0a is not vllm/old's",
		`{"RestartPolicy":{"Name":"always"}}`:                                                           "supervisor restarts workers",
		`{"PortBindings":{"8000/tcp":[{"HostIp":"","HostPort":"8008"}]}}`:                               "not published on 127.0.0.1",
		`{"PortBindings":{"8000/tcp":[{"HostIp":"127.0.0.1","HoſtIp":"0.0.0.0","HostPort":"8008"}]}}`:   "there twice",
		`{"PortBindings":{"8000/tcp":[{"HostIp":"127.0.0.1","HostPort":"5432"}]}}`:                      "not the worker's port",
		`{"PortBindings":{"8000/tcp":[{"HostIp":"127.0.0.1","HostPort":"8008"},{"HostIp":"0.0.0.0"}]}}`: "published once",
		`{"PortBindings":{"8000/udp":[{"HostIp":"127.0.0.1","HostPort":"8008"}]}}`:                      "not one port of TCP",
		`{"LogConfig":{"Type":"syslog","Config":{"syslog-address":"tcp://10.0.0.1:1"}}}`:                "LogConfig",
		`{"LogConfig":{"Type":"json-file"}}`:                                                            "LogConfig",
		`{"LogConfig":{"Config":{"max-size":"64m","max-file":"4","mode":"x"}}}`:                         "LogConfig",
		`{"ShmSize":1}`: "not the configuration's shm_size",
		`{"Memory":1}`:  "not the configuration's memory",
		`{"Ulimits":[{"Name":"nofile","Soft":1,"Hard":1}]}`: "not the configuration's",
		`{"Ulimits":[null]}`:      "an empty one",
		`{"GroupAdd":["docker"]}`: "no number",
		`{"CpusetCpus":"0;1"}`:    "no list of numbers",
		`{"Binds":"/:/host"}`:     "not what the engine takes",
		`{"Binds":[["/:/host"]]}`: "not what the engine takes",
	} {
		if out, err := made(t, g, "old", body(host)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want it to say %q: %s", host, err, want, out)
		}
	}
}

// Whose container it is to be is said by its labels, and held to that one's rules.
func TestCreateFor(t *testing.T) {
	g := guardOf(t, "/nowhere")
	of := func(pool, name, rest string) string {
		image := g.policy().pools[pool].Container.Image
		return fmt.Sprintf(`{"Image":%q,"Labels":{"roundhouse.instance":"here","roundhouse.pool":%q,"roundhouse.worker":"%s/%s"}%s}`, image, pool, pool, name, rest)
	}
	const gpu = `,"HostConfig":{"DeviceRequests":[{"Driver":"nvidia","DeviceIDs":[%q],"Capabilities":[["gpu"]]}]}`
	const node = `,"HostConfig":{"Devices":[{"PathOnHost":%[1]q,"PathInContainer":%[1]q,"CgroupPermissions":"rw"}]}`
	for _, c := range []struct{ name, body, want string }{
		{"green", of("vllm", "green", fmt.Sprintf(gpu, "GPU-0a")), ""},
		{"roundhouse-chat-7", of("chat", "7", ""), ""}, // after `roundhouse scale`
		{"roundhouse-chat-1", of("chat", "1", `,"HostConfig":{"NetworkMode":"roundhouse"},"NetworkingConfig":{"EndpointsConfig":{"roundhouse":{}}}`), ""},
		{"roundhouse-any-1", of("any", "1", fmt.Sprintf(node, "/dev/dri/card1")), ""},
		{"roundhouse-any-1", of("any", "1", fmt.Sprintf(gpu, "0000:5e:00.0")), ""},
		{"roundhouse-any-1", of("any", "1", fmt.Sprintf(gpu, "0000:18:00.0")), ""},
		{"roundhouse-any-1", of("any", "1", fmt.Sprintf(node, "/dev/dri/card2")), "no worker can use"},
		{"roundhouse-any-1", of("any", "1", fmt.Sprintf(node, "/dev/dri/card7")), "no GPU's node"},
		{"roundhouse-chat-1", of("chat", "1", fmt.Sprintf(node, "/dev/dri/card0")), `devices = "cpu"`},
		{"roundhouse-chat-1", of("chat", "1", fmt.Sprintf(gpu, "0000:5e:00.0")), "not chat/1's"},
		{"roundhouse-chat-1", of("chat", "1", `,"NetworkingConfig":{"EndpointsConfig":{"database_net":{}}}`), `"database_net" is no network of the pool`},
		{"roundhouse-chat-1", of("chat", "1", `,"NetworkingConfig":{"EndpointsConfig":{"database_net":null}}`), `"database_net" is no network of the pool`},
		{"roundhouse-chat-1", of("chat", "1", `,"NetworkingConfig":{"EndpointsConfig":{"roundhouse":{"Aliases":["door"]}}}`), "Aliases may not be set"},
		{"roundhouse-chat-1", of("chat", "1", `,"Env":["NVIDIA_VISIBLE_DEVICES=all"]`), "NVIDIA_VISIBLE_DEVICES is not the configuration's"},
		{"old", of("vllm", "old", `,"Env":["NVIDIA_DRIVER_CAPABILITIES=compute"]`), ""},
		{"roundhouse-chat-1", of("chat", "1", `,"Volumes":{"/x":{}}`), "Volumes may not be set"},
		{"door", of("chat", "1", ""), `the name "door" is not chat/1's`},
		{"", of("chat", "1", ""), "is not chat/1's"},
		{"roundhouse-nobody-1", `{"Image":"worker-cpu","Labels":{"roundhouse.instance":"here","roundhouse.pool":"nobody","roundhouse.worker":"nobody/1"}}`, "no worker of the configuration"},
		{"roundhouse-chat-1", `{"Image":"worker-cpu","Labels":{"roundhouse.instance":"here","roundhouse.pool":"chat","roundhouse.worker":"vllm/old"}}`, "no worker of the configuration"},
		{"old", strings.Replace(of("vllm", "old", ""), "intel/llm-scaler-vllm:0.21", "worker-cpu", 1), "no image of the pool"}, // another pool's
		{"old", strings.Replace(of("vllm", "old", ""), "0.21", "0.20", 1), "no image of the pool"},
		{"old", strings.Replace(of("vllm", "old", ""), "intel/llm-scaler-vllm:0.21", "", 1), "Image is missing"},
		{"old", strings.Replace(of("vllm", "old", ""), "here", "there", 1), "is \"there\" and not"},
		{"old", `{"Image":"intel/llm-scaler-vllm:0.21"}`, `is "" and not "here"`},
		{"old", of("vllm", "old", "") + `{}`, "something follows"},
		{"old", strings.Replace(of("vllm", "old", ""), `"roundhouse.pool"`, `"ofelia.job-local.x.command":"id","roundhouse.pool"`, 1), "is not the configuration's"},
		{"old", strings.Replace(of("vllm", "old", ""), `"roundhouse.pool"`, `"team":"search","roundhouse.pool"`, 1), ""},
		{"old", `not JSON`, "not JSON"},
		{"old", ``, "not JSON"},
		{"old", `[1]`, "not what the engine takes"},
		{"old", `{"A":` + strings.Repeat("[", 20000), "nested more than"},
		{"old", `{"A":[`, "not JSON"},
	} {
		out, err := made(t, g, c.name, c.body)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %.300s: got %v %s; want %q", c.name, c.body, err, out, c.want)
		}
	}
}

// An image's own labels are added by the engine where the container has none of that
// name, so those by which the supervisor knows its workers are always there.
func TestImageLabels(t *testing.T) {
	out, err := made(t, guardOf(t, "/nowhere"), "old", body(`{}`))
	var decoded container.CreateRequest
	if err == nil {
		err = json.Unmarshal([]byte(out), &decoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	if url, there := decoded.Labels["roundhouse.url"]; !there || url != "" {
		t.Errorf("an image may say where its worker is reached: %v", decoded.Labels)
	}
	if decoded.HostConfig.LogConfig.Config["max-size"] == "" {
		t.Errorf("its output is not bounded: %+v", decoded.HostConfig.LogConfig)
	}
}

// taken are the fields of the engine's own types that are not refused at once.
var taken = []string{
	"AttachStderr", "AttachStdin", "AttachStdout", "Cmd", "Entrypoint", "Env", "ExposedPorts", "Healthcheck", "Hostname", "Image", "Labels",
	"OpenStdin", "StdinOnce", "StopSignal", "StopTimeout", "Tty", "User", "WorkingDir",
	"HostConfig.Binds", "HostConfig.CpusetCpus", "HostConfig.CpusetMems", "HostConfig.DeviceRequests", "HostConfig.Devices", "HostConfig.GroupAdd",
	"HostConfig.Init", "HostConfig.IpcMode", "HostConfig.LogConfig", "HostConfig.NetworkMode", "HostConfig.PortBindings", "HostConfig.RestartPolicy",
	"HostConfig.ShmSize", "HostConfig.Ulimits", "HostConfig.CapAdd", "HostConfig.SecurityOpt", "HostConfig.ExtraHosts", "HostConfig.PidsLimit",
	"HostConfig.Memory", "HostConfig.MemorySwap", "NetworkingConfig.EndpointsConfig",
}

// Every field of Docker's own types is refused, but for those that this test lists: one
// that a later version of them has is refused until somebody has thought of it.
func TestEveryField(t *testing.T) {
	g := guardOf(t, "/nowhere")
	want := map[string]bool{}
	for _, name := range taken {
		want[name] = true
	}
	found := 0
	for _, part := range []struct {
		where string
		of    reflect.Type
		into  func(*container.CreateRequest) reflect.Value
	}{
		{"", reflect.TypeFor[container.Config](), func(r *container.CreateRequest) reflect.Value { return reflect.ValueOf(r.Config) }},
		{"HostConfig.", reflect.TypeFor[container.HostConfig](), func(r *container.CreateRequest) reflect.Value { return reflect.ValueOf(r.HostConfig) }},
		{"NetworkingConfig.", reflect.TypeFor[network.NetworkingConfig](), func(r *container.CreateRequest) reflect.Value { return reflect.ValueOf(r.NetworkingConfig) }},
	} {
		for _, f := range reflect.VisibleFields(part.of) {
			if f.Anonymous {
				continue
			}
			found++
			asked := &container.CreateRequest{
				Config:     &container.Config{Image: "intel/llm-scaler-vllm:0.21", Labels: map[string]string{moby.LabelInstance: "here", moby.LabelPool: "vllm", moby.LabelWorker: "vllm/old"}},
				HostConfig: &container.HostConfig{}, NetworkingConfig: &network.NetworkingConfig{},
			}
			fill(part.into(asked).Elem().FieldByIndex(f.Index))
			text, err := json.Marshal(asked)
			if err != nil {
				t.Fatal(err)
			}
			_, err = made(t, g, "old", string(text))
			refused := err != nil && strings.Contains(err.Error(), f.Name+" may not be set")
			if name := part.where + f.Name; refused == want[name] {
				t.Errorf("%s: %v; listed as taken: %v", name, err, want[name])
			}
		}
	}
	if found < 90 {
		t.Errorf("only %d fields were looked at", found)
	}
}

// fill gives a value of any type something that is not nothing.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint16, reflect.Uint64:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for _, f := range v.Fields() {
			if f.CanSet() {
				fill(f)
			}
		}
	}
}

// judge says what in a container, as the engine's own types have it, is beyond what
// vllm/old may have. It knows nothing of how the guard looks at it.
func judge(r container.CreateRequest) string {
	c, h := r.Config, r.HostConfig
	if c == nil || h == nil || c.Image != "intel/llm-scaler-vllm:0.21" || c.Labels["roundhouse.worker"] != "vllm/old" || len(c.Volumes) > 0 || c.MacAddress != "" || c.NetworkDisabled {
		return "another image, worker, volume or network"
	}
	for _, bind := range h.Binds {
		if bind != "/models:/models:ro" {
			return "bind " + bind
		}
	}
	for _, d := range h.Devices {
		if !slices.Contains([]string{"/dev/dri/card0", "/dev/dri/renderD128", "/dev/dri/by-path/pci-0000:18:00.0-card", "/dev/dri/by-path/pci-0000:18:00.0-render"}, d.PathOnHost) || d.CgroupPermissions != "rw" {
			return "device " + d.PathOnHost
		}
	}
	for _, list := range h.PortBindings {
		for _, b := range list {
			if b.HostIP != "127.0.0.1" && b.HostIP != "::1" || b.HostPort != "" && b.HostPort != "8008" {
				return "port at " + b.HostIP + ":" + b.HostPort
			}
		}
	}
	if !slices.Contains([]string{"", "none", "bridge", "default", "host"}, string(h.NetworkMode)) || !slices.Contains([]string{"", "none", "private", "host"}, string(h.IpcMode)) {
		return fmt.Sprintf("network %s, ipc %s", h.NetworkMode, h.IpcMode)
	}
	if r.NetworkingConfig != nil {
		for name, e := range r.NetworkingConfig.EndpointsConfig {
			if name != string(h.NetworkMode) || e != nil && !reflect.DeepEqual(*e, network.EndpointSettings{}) {
				return "endpoint at " + name
			}
		}
	}
	if h.LogConfig.Type != "json-file" || !maps.Equal(h.LogConfig.Config, map[string]string{"max-size": "64m", "max-file": "4"}) {
		return "log " + h.LogConfig.Type
	}
	if len(h.DeviceRequests) > 0 || h.ShmSize != 0 && h.ShmSize != 32<<30 || h.RestartPolicy.Name != "" && h.RestartPolicy.Name != "no" {
		return "GPUs, memory or restarts"
	}
	rest := *h // all else is as if nobody had asked for anything
	for _, done := range []any{&rest.Binds, &rest.Devices, &rest.PortBindings, &rest.NetworkMode, &rest.IpcMode, &rest.LogConfig, &rest.ShmSize, &rest.RestartPolicy,
		&rest.DeviceRequests, &rest.Init, &rest.CpusetCpus, &rest.CpusetMems, &rest.GroupAdd, &rest.Ulimits} {
		reflect.ValueOf(done).Elem().SetZero()
	}
	if !reflect.DeepEqual(rest, container.HostConfig{}) {
		return fmt.Sprintf("more than is known: %+v", rest)
	}
	return ""
}

// FuzzCreate: what passes is decoded, by the engine's own types, to a container within
// the policy, and passes again as the same.
func FuzzCreate(f *testing.F) {
	f.Add([]byte(body(`{"Binds":["/models:/models:ro"],"NetworkMode":"host"}`)))
	f.Add([]byte(body(`{"Privileged":false,"privileged":true}`)))
	f.Add([]byte(body(`{"Devices":[{"PathOnHost":"/dev/dri/card0","PathInContainer":"/dev/dri/card0","CgroupPermissions":"rw","PathOnHoſt":"/dev/sda"}]}`)))
	f.Add([]byte(body(`{"MaskedPaths":[],"ReadonlyPaths":[]}`)))
	full := container.CreateRequest{
		Config: &container.Config{Image: "intel/llm-scaler-vllm:0.21", Labels: map[string]string{moby.LabelInstance: "here", moby.LabelPool: "vllm", moby.LabelWorker: "vllm/old"}},
		HostConfig: &container.HostConfig{
			PortBindings: nat.PortMap{"8000/tcp": {{HostIP: "127.0.0.1", HostPort: "8008"}}}, ShmSize: 32 << 30,
			Resources: container.Resources{Ulimits: []*units.Ulimit{{Name: "memlock", Soft: -1, Hard: -1}}},
		},
	}
	text, err := json.Marshal(full)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	g := guardOf(f, "/nowhere")
	f.Fuzz(func(t *testing.T, text []byte) {
		out, err := made(t, g, "old", string(text))
		if err != nil {
			return
		}
		var decoded container.CreateRequest
		if err := json.Unmarshal([]byte(out), &decoded); err != nil {
			t.Fatalf("the engine cannot read it: %v\n%s", err, out)
		}
		if beyond := judge(decoded); beyond != "" {
			t.Fatalf("let through: %s\n%s\n%s", beyond, text, out)
		}
		if again, err := made(t, g, "old", out); err != nil || again != out {
			t.Fatalf("passed once and not twice: %v\n%s\n%s", err, out, again)
		}
	})
}
