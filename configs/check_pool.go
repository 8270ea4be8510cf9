package configs

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

var drivers = []string{"process", "docker", "swarm", "static", "kubernetes"}

var (
	// As Linux prints it: a domain has four digits, or more where it needs them.
	pciAddress = regexp.MustCompile(`^([0-9a-f]{4}|[1-9a-f][0-9a-f]{4,7}):[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)
	nvidiaUUID = regexp.MustCompile(`^(GPU|MIG)-[0-9A-Za-z/-]+$`)
)

func (d *decoder) checkPool(c *Config, p *Pool) {
	path := labelled("pool", p.Name)
	if !goodName.MatchString(p.Name) {
		d.failf(path, "pool %q: a name is up to 63 letters, digits, dots, dashes and underscores", p.Name)
	}
	if d.written(sub(path, "policy")) { // else it is the door's, checked there
		d.checkPolicy(c, sub(path, "policy"), p.Policy)
	}
	d.checkNamed(c, sub(path, "driver"), p.Driver, "driver", drivers)
	d.checkDriver(path, p)
	checkPods(d, path, p)
	if p.OfPods() {
		d.checkRotation(sub(path, "rotation"), p)
		return
	}
	for i := range p.Workers {
		d.checkWorker(path, p, &p.Workers[i])
	}
	checkAdapters(d, path, p)
	d.checkRotation(sub(path, "rotation"), p)
	if p.Canary != nil && len(p.Workers) < 2 {
		d.failf(sub(path, "canary"), "pool %q has one worker: a canary is judged against the others", p.Name)
	}
}

// checkDriver holds each driver to the attributes that it uses: an attribute
// set and ignored is worse than an error.
func (d *decoder) checkDriver(path string, p *Pool) {
	containers := p.Driver == "docker" || p.Driver == "swarm"
	plugin := strings.HasPrefix(p.Driver, "plugin:")
	if !containers && !plugin {
		for _, name := range containerNames {
			if d.written(sub(path, name)) && !ofProcesses(p, name) {
				d.failf(sub(path, name), "%s is for the docker and swarm drivers; this pool's driver is %s%s", name, p.Driver, environmentHint(name, p.Driver))
			}
		}
	}
	for _, name := range swarmNames {
		if d.written(sub(path, name)) && p.Driver != "swarm" && !plugin {
			d.failf(sub(path, name), "%s is for the swarm driver; this pool's driver is %s", name, p.Driver)
		}
	}
	if p.Driver == "swarm" {
		d.checkSwarm(path, p)
	}
	if containers {
		if p.Container.Image == "" {
			d.failf(path, "pool %q: the %s driver takes an image", p.Name, p.Driver)
		}
		checkConfinement(d, path, &p.Container)
		if p.Container.NetworkMode != "" && len(p.Container.Networks) > 0 {
			d.failf(sub(path, "networks"), "networks and network_mode: give one of them")
		}
	}
	if p.Container.Command != nil && (containers || p.Driver == "process") {
		d.checkCommand(path, p)
	}
	if p.Driver == "static" {
		for _, name := range []string{"engine", "rotation", "workers", "canary"} {
			if d.written(sub(path, name)) {
				d.failf(sub(path, name), "%s: a static pool's workers are run by somebody else; it holds worker blocks with a url", name)
			}
		}
		if len(p.Workers) == 0 {
			d.failf(path, `pool %q has no worker; write worker "a" { url = "http://…" }`, p.Name)
		}
	}
	for name := range p.Container.Ulimits {
		if p.Driver == "process" && !slices.Contains(limitNames, name) {
			d.failf(sub(path, "ulimits"), "ulimits: there is no limit %q of a process; there are %s", name, strings.Join(limitNames, ", "))
		}
	}
	if p.Driver == "process" && p.Container.Command == nil && p.GPUsPerWorker > 1 {
		d.failf(sub(path, "gpus_per_worker"), "gpus_per_worker is %d; our own engine takes one", p.GPUsPerWorker)
	}
}

// ofProcesses reports whether a pool of processes takes an attribute of containers.
func ofProcesses(p *Pool, name string) bool {
	return p.Driver == "process" && (name == "ulimits" || name == "command" || name == "environment" && p.Container.Command != nil)
}

// checkCommand holds a command to the attributes beside it.
func (d *decoder) checkCommand(path string, p *Pool) {
	if d.written(sub(path, "engine")) {
		d.failf(sub(path, "command"), "command and an engine block: the engine block makes the command; give one of them")
	}
	if p.Driver == "process" && len(p.Container.Command) == 0 {
		d.failf(sub(path, "command"), "command is empty; it is a program and its arguments, with $PORT for its port")
	}
}

// limitNames are the limits that a process of ours can be given.
var limitNames = []string{"as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"}

func environmentHint(name, driver string) string {
	if name == "environment" && driver == "process" {
		return "; its environment stands in the engine block, or beside a command"
	}
	return ""
}

func (d *decoder) checkWorker(poolPath string, p *Pool, w *Worker) {
	path := sub(poolPath, labelled("worker", w.Name))
	if !goodName.MatchString(w.Name) {
		d.failf(path, "worker %q: a name is up to 63 letters, digits, dots, dashes and underscores", w.Name)
	}
	static := p.Driver == "static"
	if static && w.URL == "" {
		d.failf(path, "worker %q has no url", w.Name)
	}
	if w.URL != "" && !static {
		d.failf(sub(path, "url"), "url is for the static driver; here it follows from port")
	}
	if w.URL != "" && !goodURL(w.URL) {
		d.failf(sub(path, "url"), `url is %s; write one such as "http://127.0.0.1:8008"`, d.show(sub(path, "url"), w.URL))
	}
	if u, err := url.Parse(w.URL); err == nil && u.User != nil {
		d.failf(sub(path, "url"), "url holds a user; put the key into api_key")
	}
	if static && (len(w.GPUs) > 0 || w.Port != 0) {
		d.failf(path, "worker %q: gpus and port are for workers that roundhouse starts", w.Name)
	}
	checkOwn(d, path, p, w)
	if w.Takeover != "" && p.Driver != "docker" {
		d.failf(sub(path, "takeover"), "takeover is for the docker driver")
	}
	if p.Driver == "swarm" && len(w.GPUs) > 0 {
		d.failf(sub(path, "gpus"), `gpus: a Swarm service cannot be given a device; have its nodes announce theirs, and reserve them by generic_resources = { "NVIDIA-GPU" = 1 }`)
		return
	}
	for _, gpu := range w.GPUs {
		if !pciAddress.MatchString(gpu) && !nvidiaUUID.MatchString(gpu) {
			d.failf(sub(path, "gpus"), `%q is neither a PCI address such as "0000:18:00.0" nor an NVIDIA UUID such as "GPU-…"; roundhouse doctor lists them`, gpu)
		}
	}
	if n := len(w.GPUs); n > 0 {
		if p.Devices == "cpu" {
			d.failf(sub(path, "gpus"), `gpus, and devices = "cpu" in the pool: give one of them`)
		}
		if written := d.written(sub(poolPath, "gpus_per_worker")); (written || p.Driver == "process") && n != p.GPUsPerWorker {
			d.failf(sub(path, "gpus"), "worker %q names %d gpus where gpus_per_worker is %d", w.Name, n, p.GPUsPerWorker)
		}
	}
}

func (d *decoder) checkRotation(path string, p *Pool) {
	r := p.Rotation
	if !p.OfPods() && r.MinReady > max(len(p.Workers)-1, 0) && (r.Strategy != "surge" || r.MinReady > len(p.Workers)) {
		d.failf(sub(path, "min_ready"), "min_ready is %d of %d workers: none could ever take its turn; at most %d, or strategy = \"surge\"",
			r.MinReady, len(p.Workers), max(len(p.Workers)-1, 0))
	}
	windows := make([]Window, 0, len(r.Blackout))
	for _, text := range r.Blackout {
		w, err := ParseWindow(text)
		if err != nil {
			d.failf(sub(path, "blackout"), "blackout: %v", err)
			continue
		}
		windows = append(windows, w)
	}
	zone := time.Local
	if r.Timezone != "" {
		var err error
		if zone, err = time.LoadLocation(r.Timezone); err != nil || r.Timezone == "Local" {
			d.failf(sub(path, "timezone"), `timezone is %s; write an IANA name such as "Europe/Berlin"`, d.show(sub(path, "timezone"), r.Timezone))
			zone, windows = time.UTC, nil // nothing can be said of when they are
		}
	}
	if r.Schedule != "" {
		d.checkSchedule(path, r, zone, windows)
	}
}

// checkSchedule looks a year ahead, from a fixed day, so that the same file
// is always right or always wrong.
func (d *decoder) checkSchedule(path string, r Rotation, zone *time.Location, windows []Window) {
	at := sub(path, "schedule")
	schedule, err := ParseSchedule(r.Schedule)
	if err != nil {
		d.failf(at, "schedule: %v", err)
		return
	}
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, zone) // a leap year, so that 29 February is found
	first := schedule.Next(start)
	if first.IsZero() {
		d.failf(at, "schedule %s names a day that never comes", d.show(at, r.Schedule))
		return
	}
	if len(windows) > 0 {
		inside := func(t time.Time) bool {
			return slices.ContainsFunc(windows, func(w Window) bool { return w.Contains(t) })
		}
		t := first
		for range 400 {
			if t.IsZero() || !inside(t) {
				break
			}
			t = schedule.Next(t)
		}
		if !t.IsZero() && inside(t) {
			d.failf(sub(path, "blackout"), "blackout covers every time of the schedule %s: no rotation would ever begin", d.show(at, r.Schedule))
		}
	}
	if second := schedule.Next(first); second.Sub(first) < 5*time.Minute {
		d.warnf(at, "schedule %s begins again after %s; once a night is \"0 3 * * *\"", d.show(at, r.Schedule), Duration(second.Sub(first)))
	}
	if gap := schedule.Next(first).Sub(first); r.Jitter > 0 && Duration(gap) <= r.Jitter {
		d.failf(sub(path, "jitter"), "jitter is %s, not shorter than the %s between two rotations", r.Jitter, Duration(gap))
	}
}

// ParseSchedule reads a five-field cron expression, or @hourly, @daily,
// @weekly, @monthly, @yearly. Its Next is asked with a time in the zone of
// the rotation; time zones inside the expression are refused, so that there
// is one place for them.
func ParseSchedule(expr string) (cron.Schedule, error) {
	bad := fmt.Errorf(`%q is not a five-field cron expression such as "0 3 * * *" (minute hour day month weekday)`, expr)
	if strings.Contains(expr, "TZ=") {
		return nil, fmt.Errorf("%q holds a time zone; it stands in timezone", expr)
	}
	if strings.HasPrefix(expr, "@every") {
		return nil, fmt.Errorf(`%q counts from the start of the program, so it would drift; write the hours: "0 */6 * * *"`, expr)
	}
	if !strings.HasPrefix(expr, "@") && len(strings.Fields(expr)) != 5 {
		return nil, bad
	}
	schedule, err := cron.ParseStandard(expr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", bad, err)
	}
	return schedule, nil
}
