package diagnose

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Facts are what rules know besides metrics. All of it may be missing.
type Facts struct {
	Pools    []Pool
	Keys     []Key
	Requests []Request // in flight
	Starts   []Start   // unplanned ones of the last hour
}

// Pool is what the configuration says of a pool.
type Pool struct {
	Name        string
	Policy      string
	Sticky      string // of a route to it
	Static      bool   // its workers are run by somebody else
	Workers     int
	Args        []string // of its engine
	MaxModelLen int
	ByHand      []string // workers whose kv_tokens somebody has set
}

// Key is a key with a limit on its requests at once.
type Key struct {
	Name       string
	Concurrent int
}

// Request is one that is under way, never its text.
type Request struct {
	ID, Pool, Key string
	Prompt        int64
}

// Start is one start of a worker that nobody had planned.
type Start struct {
	Worker string // pool/name
	At     time.Time
	Reason string
}

// pool returns what is known of a pool, if only its name.
func (f *Facts) pool(name string) *Pool {
	for i := range f.Pools {
		if f.Pools[i].Name == name {
			return &f.Pools[i]
		}
	}
	return &Pool{Name: name}
}

// flag is the value of a flag in the engine's arguments, "" if it is not there.
func (p *Pool) flag(name string) string {
	for i, arg := range p.Args {
		flag, value, joined := strings.Cut(arg, "=")
		if strings.ReplaceAll(flag, "_", "-") != name {
			continue
		}
		if joined {
			return value
		}
		if i+1 < len(p.Args) && !strings.HasPrefix(p.Args[i+1], "-") {
			return p.Args[i+1]
		}
		return "true"
	}
	return ""
}

// number is a flag's value as a number, 0 if it has none.
func (p *Pool) number(name string) float64 {
	v, err := strconv.ParseFloat(p.flag(name), 64)
	if err != nil {
		return 0
	}
	return v
}

// with is the change that gives a flag a value.
func (p *Pool) with(name, value string) *Change {
	args, found := []string{}, false
	for i := 0; i < len(p.Args); i++ {
		flag, _, joined := strings.Cut(p.Args[i], "=")
		if strings.ReplaceAll(flag, "_", "-") != name {
			args = append(args, p.Args[i])
			continue
		}
		if !joined && i+1 < len(p.Args) && !strings.HasPrefix(p.Args[i+1], "-") {
			i++
		}
		if !found && value != "" {
			args = append(args, name, value)
		}
		found = true
	}
	if !found && value != "" {
		args = append(args, name, value)
	}
	return &Change{Now: p.engine(p.Args), Proposed: p.engine(args), VLLM: strings.TrimSpace(name + " " + value)}
}

// engine is a pool's block with these arguments of its engine.
func (p *Pool) engine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = strconv.Quote(a)
	}
	return fmt.Sprintf("pool %q {\n  engine {\n    args = [%s]\n  }\n}", p.Name, strings.Join(quoted, ", "))
}

// apply is how a changed setting of a pool takes effect.
func (p *Pool) apply() string {
	if p.Static {
		return "restart the engine with it; Roundhouse does not run this one"
	}
	return "roundhouse reload, which turns the workers of " + p.Name + " one by one"
}

// more is the command that adds a worker.
func (p *Pool) more() string {
	if p.Static || p.Workers == 0 {
		return "add a worker to the pool " + p.Name + ", then roundhouse reload"
	}
	return fmt.Sprintf("roundhouse scale %s %d", p.Name, p.Workers+1)
}

func poolOf(object string) string {
	pool, _, _ := strings.Cut(object, "/")
	return pool
}
