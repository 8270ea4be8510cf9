package configs

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Of returns the engine and the container of one worker: the pool's, with the
// worker's own settings. Variables override those of their name, volumes those at
// their target; args follow the pool's, and an engine takes the last of a flag.
func (p *Pool) Of(w Worker) (Engine, Container) {
	e, c := p.Engine, p.Container
	if len(w.Environment) > 0 {
		// The engine's variables override the container's, but for the commands of
		// processes, in which $PORT stands for a number.
		into := &e.Environment
		if p.Driver == "process" && c.Command != nil {
			into = &c.Environment
		}
		all := maps.Clone(*into)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, w.Environment)
		*into = all
	}
	if c.Command != nil {
		c.Command = slices.Concat(c.Command, w.Args)
	} else {
		e.Args = slices.Concat(e.Args, w.Args)
	}
	if len(w.Volumes) > 0 {
		c.Volumes = slices.DeleteFunc(slices.Clone(c.Volumes), func(old string) bool {
			return slices.ContainsFunc(w.Volumes, func(own string) bool { return mountedAt(own) == mountedAt(old) })
		})
		c.Volumes = append(c.Volumes, w.Volumes...)
	}
	if len(p.Adapters) > 0 && c.Command == nil {
		p.enable(&e)
	}
	return e, c
}

// mountedAt is the path of a volume inside; an unreadable volume is its own.
func mountedAt(volume string) string {
	v, err := ParseVolume(volume)
	if err != nil {
		return volume
	}
	return path.Clean(v.Target)
}

// checkOwn holds a worker's own settings to the abilities of its pool's driver.
func checkOwn(d *decoder, path string, p *Pool, w *Worker) {
	if p.Driver == "static" {
		for _, name := range []string{"environment", "args", "volumes"} {
			if d.written(sub(path, name)) {
				d.failf(sub(path, name), "%s: a static pool's workers are run by somebody else", name)
			}
		}
		return
	}
	if p.Driver == "process" && len(w.Volumes) > 0 {
		d.failf(sub(path, "volumes"), "volumes is for the docker and swarm drivers; this pool's driver is process")
	}
	if p.Driver == "swarm" {
		d.checkVolumes(sub(path, "volumes"), w.Volumes)
	}
	if c := p.Container; c.Command != nil && len(w.Args) > 0 && shell(slices.Concat(c.Entrypoint, c.Command)) {
		d.failf(sub(path, "args"), "args: the pool's command is a shell's -c, and what follows it is the shell's, not the engine's; write a variable into the command ($NAME), and give each worker its value in environment")
	}
}

// shells run a text that is given to them with -c.
var shells = []string{"sh", "bash", "dash", "ash", "zsh"}

// shell reports whether a command is a shell with a text to run.
func shell(command []string) bool {
	return len(command) > 0 && slices.Contains(shells, path.Base(command[0])) && slices.ContainsFunc(command[1:], func(a string) bool {
		return strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.HasSuffix(a, "c")
	})
}
