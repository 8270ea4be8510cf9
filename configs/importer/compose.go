package importer

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// compose plans for a compose file: containers of vLLM become pools, the
// proxy before them becomes the door.
func (p *plan) compose(name string, src []byte, o Options) error {
	services, err := p.services(src, o)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return err
	}
	p.listen = ":8000"
	proxied := false
	for _, s := range services {
		switch {
		case s.is("haproxy"), s.is("nginx"), s.is("traefik"), s.is("envoy"):
			proxied = true
			p.proxy(s, o)
		case s.is("prometheus"), s.is("grafana"):
			p.noteOn(s.name, "compose/compose.monitoring.yaml brings Prometheus and Grafana with data source, dashboards and alerts set up.")
		default:
			if err := p.worker(s, dir, o); err != nil {
				return fmt.Errorf("service %s: %w", s.name, err)
			}
		}
	}
	p.rotation(proxied, o)
	p.nameAndMove()
	return nil
}

// services reads the services in their order, with variables put in.
func (p *plan) services(src []byte, o Options) ([]*service, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(src, &root); err != nil {
		return nil, err
	}
	beside := map[string]string{}
	if text, err := o.Read(".env"); err == nil {
		beside = dotenv(text)
	}
	interpolate(&root, func(name string) (string, bool) {
		if v, ok := o.Env(name); ok {
			return v, true
		}
		v, ok := beside[name]
		return v, ok
	}, func(name string) { p.note("the variable %s is not set; it became nothing, as compose has it.", name) })
	var file struct {
		Services yaml.Node   `yaml:"services"`
		Include  []yaml.Node `yaml:"include"`
	}
	if err := root.Decode(&file); err != nil {
		return nil, err
	}
	if len(file.Include) > 0 {
		p.note("include: the files that it names were not read; import `docker compose config`'s output instead.")
	}
	if file.Services.Kind != yaml.MappingNode {
		return nil, errors.New("it has no services")
	}
	var out []*service
	for i := 0; i+1 < len(file.Services.Content); i += 2 {
		s := &service{name: file.Services.Content[i].Value}
		if err := file.Services.Content[i+1].Decode(s); err != nil {
			return nil, fmt.Errorf("service %s: %w", s.name, err)
		}
		if !s.Extends.IsZero() {
			p.noteOn(s.name, "extends was not followed; import `docker compose config`'s output instead.")
		}
		out = append(out, s)
	}
	return out, nil
}

// is reports whether a service runs the image of that name.
func (s *service) is(name string) bool {
	image, _, _ := strings.Cut(s.Image[strings.LastIndexByte(s.Image, '/')+1:], ":")
	return strings.Contains(image, name)
}

// proxy takes over where a proxy listened, from the file that it mounts.
func (p *plan) proxy(s *service, o Options) {
	p.note("%s (%s): the door takes its place.", s.name, s.Image)
	for _, v := range s.Volumes {
		parts := strings.Split(string(v), ":")
		if len(parts) < 2 {
			continue
		}
		base := filepath.Base(parts[1])
		if base != "haproxy.cfg" && filepath.Ext(base) != ".conf" {
			continue
		}
		text, err := o.Read(parts[0])
		if err != nil {
			p.note("%s could not be read, so the door listens on :8000.", parts[0])
			continue
		}
		if base == "haproxy.cfg" {
			binds, _ := p.readHAProxy(string(text))
			p.front(binds)
			continue
		}
		q := &plan{}
		if q.nginx(string(text)) == nil {
			p.listen, p.limits = q.listen, q.limits
		}
	}
}

// worker adds a service that serves a model to the pool that it belongs to.
func (p *plan) worker(s *service, dir string, o Options) error {
	args, before, ok := findServe(slices.Concat(s.Entrypoint, s.Command))
	if !ok && s.is("vllm") {
		args, ok = s.Command, true // the image's own entrypoint is `vllm serve`
		if len(s.Entrypoint) > 0 {
			p.noteOn(s.name, "its entrypoint %q is not `vllm serve`; check the engine block.", strings.Join(s.Entrypoint, " "))
		}
	}
	if !ok {
		p.note("%s (%s): not a vLLM server; it was left as it is.", s.name, s.Image)
		return nil
	}
	if strings.Contains(before, "source") || strings.Contains(before, "setvars") {
		p.noteOn(s.name, "before vllm its shell ran %q. Current images need that no more and may not have the file; if yours does, write entrypoint and command instead of the engine block.", strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(lastWord(before)), "&&")))
	}
	served, err := parseServe(args)
	if err != nil {
		return err
	}
	one, err := p.poolOf(s, served, dir, o)
	if err != nil {
		return err
	}
	w := worker{name: cleanName(s.name), port: served.port, takeover: s.ContainerName}
	if s.ContainerName != "" {
		w.name = cleanName(s.ContainerName)
	}
	if port := s.published(); port != 0 && s.NetworkMode != "host" {
		w.port = port
	}
	if s.ContainerName == "" {
		w.comment = "If it runs already: takeover = its container's name (docker ps)."
	}
	w.gpus = p.gpus(s, one)
	replicas := max(s.Scale, s.Deploy.Replicas, 1)
	if served.dp > maxWorkers || replicas > maxWorkers/served.dp {
		return fmt.Errorf("%d replicas of --data-parallel-size %d: a pool has at most %d workers", replicas, served.dp, maxWorkers)
	}
	p.join(one, w, served.dp*replicas)
	return nil
}

// maxWorkers is the most that a pool may have.
const maxWorkers = 4096

// lastWord is what a shell ran before vllm: of `bash -lc "source x && vllm"`
// the part within the quotes.
func lastWord(before string) string {
	if i := strings.Index(before, "source"); i >= 0 {
		return before[i:]
	}
	return before
}

// poolOf makes the pool that a service would be alone.
func (p *plan) poolOf(s *service, served serve, dir string, o Options) (*pool, error) {
	one := &pool{driver: "docker", image: s.Image, model: served.model, served: servedNames(served), quant: served.quant, maxLen: served.maxLen,
		args: served.rest, network: s.NetworkMode, networks: s.Networks, ipc: s.IPC, init: s.Init, user: s.User, labels: s.Labels,
		gpus: served.tp * served.pp}
	p.parallel(one, served)
	p.client(served.key)
	if s.Image == "" {
		one.image = "SET-THIS"
		p.note("%s is built, not pulled: put the name of its image into the pool.", s.name)
	}
	if strings.HasSuffix(s.Image, ":latest") || !strings.Contains(s.Image[strings.LastIndexByte(s.Image, '/')+1:], ":") {
		p.note("%s has no fixed tag: what runs tomorrow is not what was tried today. Pin it.", s.Image)
	}
	environment := map[string]string{}
	for _, file := range s.EnvFile {
		text, err := o.Read(file)
		if err != nil {
			p.noteOn(s.name, "env_file %s could not be read.", file)
			continue
		}
		for k, v := range dotenv(text) {
			environment[k] = v
		}
	}
	for k, v := range s.Environment {
		environment[k] = v
	}
	one.environment = p.steering(environment)
	for _, name := range slices.Sorted(maps.Keys(one.environment)) {
		if secretName.MatchString(name) && one.environment[name] != "" {
			p.noteOn(s.name, "%s looks like a secret, and stands in this file now. Better: %s = env(%q), and the value in roundhouse's own environment.", name, name, name)
		}
	}
	for _, v := range s.Volumes {
		one.volumes = append(one.volumes, absolute(string(v), dir))
	}
	var err error
	if s.ShmSize != "" {
		if one.shm, err = composeSize(s.ShmSize); err != nil {
			return nil, fmt.Errorf("shm_size: %w", err)
		}
	}
	if one.ulimits, err = ulimits(&s.Ulimits); err != nil {
		return nil, err
	}
	if err := p.confine(s, one); err != nil {
		return nil, err
	}
	p.noteService(s)
	return one, nil
}

// secretName is what variables are called that hold secrets.
var secretName = regexp.MustCompile(`(TOKEN|SECRET|PASSWORD|_KEY)$`)

// noteService tells what of a service has no place in a pool.
func (p *plan) noteService(s *service) {
	if len(s.Networks) > 0 {
		p.noteOn(s.name, "networks are Docker's names (docker network ls); compose puts its project's name before them.")
	}
	if s.WorkingDir != "" {
		p.noteOn(s.name, "working_dir %s is the image's affair; relative paths in args would need it.", s.WorkingDir)
	}
	if !s.Healthcheck.IsZero() {
		p.noteOn(s.name, "its healthcheck is not needed; the supervisor asks /health, watches the tokens that come out, and tries a completion before a worker is used.")
	}
	if len(s.Profiles) > 0 {
		p.noteOn(s.name, "it stands under the profiles %s; it was imported as if they were chosen.", strings.Join(s.Profiles, ", "))
	}
	var lost []string
	for key := range s.Rest {
		if !slices.Contains(needless, key) && !strings.HasPrefix(key, "x-") {
			lost = append(lost, key)
		}
	}
	if !s.Deploy.Resources.Limits.IsZero() {
		lost = append(lost, "deploy.resources.limits")
	}
	if slices.Sort(lost); len(lost) > 0 {
		p.noteOn(s.name, "not carried over, because a pool has no such settings: %s.", strings.Join(lost, ", "))
	}
}

// needless are what a service may say that the supervisor does by itself, or that
// changes nothing of a server.
var needless = []string{"depends_on", "restart", "expose", "logging", "stop_signal", "tty", "stdin_open", "attach", "annotations", "platform", "pull_policy"}

var byAddress = regexp.MustCompile(`pci-([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7])-`)

// gpus are the devices that a service names in a way that lasts: by PCI address or
// by UUID. What it counts or numbers becomes how many each worker takes.
func (p *plan) gpus(s *service, one *pool) []string {
	var out []string
	for i := range s.Devices {
		for _, m := range byAddress.FindAllStringSubmatch(s.Devices[i].Value, -1) {
			if address := strings.ToLower(m[1]); !slices.Contains(out, address) {
				out = append(out, address)
			}
		}
	}
	for _, d := range s.Deploy.Resources.Reservations.Devices {
		numbered := 0
		for _, id := range d.IDs {
			if strings.HasPrefix(id, "GPU-") || strings.HasPrefix(id, "MIG-") {
				out = append(out, id)
			} else {
				numbered++
			}
		}
		if n, err := strconv.Atoi(d.Count); err == nil {
			numbered = max(numbered, n)
		}
		if d.Count == "all" {
			p.noteOn(s.name, "it reserved all GPUs; each worker gets as many as it computes on. gpus_per_worker changes that.")
		}
		if numbered > 0 {
			one.gpus = max(one.gpus, numbered)
			p.noteOn(s.name, "device_ids %s: numbers change with a card more, so each worker gets %d free devices instead. To choose, write gpus = [\"0000:18:00.0\"] or UUIDs into its block; `roundhouse doctor` lists them.", strings.Join(d.IDs, ", "), numbered)
		}
	}
	if len(out) > 0 && len(out) != max(1, one.gpus) {
		p.noteOn(s.name, "it is given the GPUs %s and computes on %d; each worker takes free ones. gpus and gpus_per_worker say otherwise.", strings.Join(out, ", "), max(1, one.gpus))
		return nil
	}
	return out
}

// published is the first port that a service opens on the host.
func (s *service) published() int {
	for _, n := range s.Ports {
		text := n.Value
		if n.Kind == yaml.MappingNode {
			var long struct {
				Published string `yaml:"published"`
			}
			if n.Decode(&long) == nil {
				text = long.Published + ":"
			}
		}
		parts := strings.Split(text, ":")
		if len(parts) < 2 {
			continue
		}
		if port, err := strconv.Atoi(parts[len(parts)-2]); err == nil {
			return port
		}
	}
	return 0
}

// absolute makes the source of a bind mount absolute: the supervisor does not
// run where the compose file lies.
func absolute(v, dir string) string {
	source, rest, ok := strings.Cut(v, ":")
	if !ok || !strings.HasPrefix(source, ".") {
		return v
	}
	return filepath.Join(dir, source) + ":" + rest
}

// join puts a worker into the pool of those that serve the same in the same
// way, or into a new one.
func (p *plan) join(one *pool, w worker, n int) {
	for i := range p.pools {
		other := p.pools[i]
		other.workers, other.count = nil, 0
		if reflect.DeepEqual(other, *one) {
			p.pools[i].add(w, n)
			return
		}
	}
	one.add(w, n)
	p.pools = append(p.pools, *one)
}

func (p *pool) add(w worker, n int) {
	if n == 1 {
		p.workers = append(p.workers, w)
		return
	}
	for i := range n {
		p.workers = append(p.workers, worker{name: fmt.Sprintf("%s-%d", w.name, i+1), comment: w.comment})
	}
}

// rotation gives the pools a schedule where the old set-up had one.
func (p *plan) rotation(proxied bool, o Options) {
	why := ""
	if _, err := o.Read("vllm_bootstrap_and_rotate.sh"); err == nil {
		why = "The old script's crontab line * 3 * * * started it sixty times between 03:00 and 03:59, and one of two engines stood idle; this is once a night, and all of them serve."
		p.note("vllm_bootstrap_and_rotate.sh: take its line out of crontab (crontab -l | grep -v vllm_bootstrap_and_rotate.sh | crontab -) before `roundhouse up`.")
	} else if proxied {
		why = "Once a night, one worker after the other; leave it out to rotate by hand alone."
	}
	for i := range p.pools {
		p.pools[i].rotate = why
	}
}

// nameAndMove names the pools, and moves the door where a container already
// listens.
func (p *plan) nameAndMove() {
	seen := map[string]bool{}
	for i := range p.pools {
		one := &p.pools[i]
		one.name = "vllm"
		if len(p.pools) > 1 && len(one.served) > 0 {
			one.name = cleanName(filepath.Base(one.served[0]))
		}
		base := one.name
		for n := 2; seen[one.name]; n++ {
			one.name = fmt.Sprintf("%s-%d", base, n)
		}
		seen[one.name] = true
		for _, w := range one.workers {
			if fmt.Sprintf(":%d", w.port) == p.listen {
				p.listen = ":8080"
				p.note("%s listens on port %d while it runs, so the door listens on :8080. Give the worker another port and the door this one once clients have moved.", w.name, w.port)
			}
		}
	}
}
