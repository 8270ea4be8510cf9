package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"roundhouse/supervisor/driver"
	"roundhouse/worker/device"
)

// Driver runs workers as processes: our own engine, or a pool's command.
type Driver struct {
	manager *Manager
	binary  string   // roundhouse-worker
	env     []string // what every worker gets
}

var _ driver.Driver = (*Driver)(nil)

// NewDriver returns a driver that starts binary with env.
func NewDriver(n *Manager, binary string, env []string) *Driver {
	return &Driver{manager: n, binary: binary, env: env}
}

// note is what a worker's record keeps.
type note struct {
	Generation uint64       `json:"generation"`
	Hash       string       `json:"hash"`
	URL        string       `json:"url"`
	Place      driver.Place `json:"place"`
}

// prefix keeps workers apart from doors among the children.
const prefix = "worker/"

// Prepare looks for the program and the model, and runs the program once for
// nothing: one that is not for this machine, or for which no process can be had, is
// found while the last generation still runs.
func (d *Driver) Prepare(ctx context.Context, spec driver.Spec) error {
	if spec.Container.Command != nil {
		_, err := program(spec.Container.Command)
		return err
	}
	if _, err := os.Stat(d.binary); err != nil {
		return fmt.Errorf("the worker program is missing: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var ended *exec.ExitError // what it makes of the word is its own affair
	if err := exec.CommandContext(ctx, d.binary, "version").Run(); err != nil && !errors.As(err, &ended) && ctx.Err() == nil {
		return fmt.Errorf("the worker program cannot be started: %w", err)
	}
	if spec.Engine.Model != "" {
		if _, err := os.Stat(spec.Engine.Model); err != nil {
			return fmt.Errorf("engine.model: %w", err)
		}
	}
	return nil
}

// Start starts a worker on a free port of the loopback, or on its own.
func (d *Driver) Start(_ context.Context, spec driver.Spec) error {
	port := spec.Port
	var files []*os.File
	if port == 0 {
		free, socket, err := reservePort()
		if err != nil {
			return err
		}
		defer socket.Close() // the worker has its own by then, for as long as it lives
		port, files = free, []*os.File{socket}
	}
	note, err := json.Marshal(note{spec.Generation, spec.Hash, "http://127.0.0.1:" + strconv.Itoa(port), spec.Place})
	if err != nil {
		return err
	}
	argv, err := d.argv(spec, port)
	if err != nil {
		return err
	}
	_, err = d.manager.Start(Child{
		ID: prefix + spec.ID(), Argv: argv, Env: d.environment(spec, port), Files: files,
		CPUs: spec.Place.CPUs, Mems: device.FormatList(spec.Place.NUMA), Note: note,
		Limits: spec.Container.Ulimits,
	})
	return err
}

// argv is the command line of a worker: of our own program, or the pool's command
// with the worker's port in it.
func (d *Driver) argv(spec driver.Spec, port int) ([]string, error) {
	if spec.Container.Command == nil {
		if _, err := os.Stat(d.binary); err != nil {
			return nil, fmt.Errorf("the worker program is missing: %w; build it with `make build`, or put it beside roundhouse", err)
		}
		return append([]string{d.binary}, Arguments(spec, port)...), nil
	}
	path, err := program(spec.Container.Command)
	if err != nil {
		return nil, err
	}
	argv := []string{path}
	for _, a := range spec.Container.Command[1:] {
		argv = append(argv, withPort(a, port))
	}
	return argv, nil
}

// program finds the program of a command, as a shell would.
func program(command []string) (string, error) {
	path, err := exec.LookPath(command[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("command: %w", err)
	}
	return path, nil
}

// environment is what a worker finds in its environment. A command also finds its
// port there, and the devices that are its own.
func (d *Driver) environment(spec driver.Spec, port int) []string {
	env := append([]string(nil), d.env...)
	for k, v := range spec.Engine.Environment {
		env = append(env, k+"="+v)
	}
	if spec.Container.Command == nil {
		return env
	}
	var gpus []string
	for _, g := range spec.Place.GPUs {
		gpus = append(gpus, g.ID)
	}
	env = append(env, "PORT="+strconv.Itoa(port), "GPUS="+strings.Join(gpus, ","))
	for k, v := range spec.Container.Environment {
		env = append(env, k+"="+withPort(v, port))
	}
	return env
}

// withPort puts a port into a text that asks for it.
func withPort(text string, port int) string {
	p := strconv.Itoa(port)
	return strings.NewReplacer("${PORT}", p, "$PORT", p).Replace(text)
}

// Arguments is the command line of a worker of ours.
func Arguments(spec driver.Spec, port int) []string {
	args := []string{"serve", "--host", "127.0.0.1", "--port", strconv.Itoa(port)}
	for _, name := range spec.Engine.ServedModelName {
		args = append(args, "--served-model-name", name)
	}
	if spec.Engine.Model != "" {
		args = append(args, "--model", spec.Engine.Model)
	}
	if spec.Engine.Quantization != "" {
		args = append(args, "--quantization", spec.Engine.Quantization)
	}
	if spec.Engine.MaxModelLen > 0 {
		args = append(args, "--max-model-len", strconv.Itoa(spec.Engine.MaxModelLen))
	}
	where := "cpu"
	if len(spec.Place.GPUs) > 0 {
		where = "xpu:" + spec.Place.GPUs[0].ID
	}
	args = append(args, "--device", where)
	if spec.Place.CPUs != "" {
		args = append(args, "--cpus", spec.Place.CPUs)
	}
	if len(spec.Place.NUMA) > 0 {
		args = append(args, "--mems", device.FormatList(spec.Place.NUMA))
	}
	return append(args, spec.Engine.Args...)
}

// Stop ends a worker's process.
func (d *Driver) Stop(ctx context.Context, id string, generation uint64, grace time.Duration) error {
	r, err := d.manager.read(prefix + id)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var n note
	if err := json.Unmarshal(r.Note, &n); err != nil {
		return err
	}
	if n.Generation != generation {
		return nil // what was to be stopped is gone
	}
	return d.manager.Stop(ctx, prefix+id, grace)
}

// List returns the workers that have a record.
func (d *Driver) List(context.Context) ([]driver.Instance, error) {
	found, err := d.manager.Find()
	if err != nil {
		return nil, err
	}
	var out []driver.Instance
	for _, f := range found {
		id, ours := strings.CutPrefix(f.ID, prefix)
		if !ours {
			continue
		}
		var n note
		if err := json.Unmarshal(f.Note, &n); err != nil {
			return nil, fmt.Errorf("the record of %s: %w", id, err)
		}
		out = append(out, driver.Instance{
			ID: id, Generation: n.Generation, Hash: n.Hash, Running: f.Running, URL: n.URL, PID: f.PID,
			Began: f.Began, Ended: f.Ended, Killed: f.Ended == killedEnd, OOM: strings.HasSuffix(f.Ended, starvedEnd), Memory: resident(f.PID), Place: n.Place, Released: !f.Running,
		})
	}
	return out, nil
}

// resident reads how much memory a process really holds, in bytes.
func resident(pid int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// Forget drops the record of a worker that has ended and that nobody wants any more.
// Its log stays.
func (d *Driver) Forget(id string) {
	if !d.manager.Running(prefix + id) {
		d.manager.Forget(prefix + id)
	}
}

// Logs opens a worker's log.
func (d *Driver) Logs(ctx context.Context, id string, options driver.LogOptions) (io.ReadCloser, error) {
	return d.manager.OpenLog(ctx, prefix+id, options)
}

// Changed delivers a value when a process has begun or ended.
func (d *Driver) Changed() <-chan struct{} { return d.manager.Changed() }

// Close does nothing: the manager belongs to whoever made it.
func (d *Driver) Close() error { return nil }
