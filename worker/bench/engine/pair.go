package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
)

// pair compares two workers of one core each with one of them, as a share of
// what two copies of the bare loop reach on the same cores, in turns.
func (m *measured) pair() error {
	if runtime.NumCPU() < 2 {
		m.table.add(line{name: m.name + " two workers", beside: "needs two processors"})
		return nil
	}
	var children [2]*other
	for i := range children {
		c, err := startOther(m, i)
		if err != nil {
			return err
		}
		defer c.stop()
		children[i] = c
	}
	first, both := children[:1], children[:]
	var shares, gains, loops []float64
	for range m.pairs {
		var rate [4]float64
		for i, what := range []struct {
			who     []*other
			command string
		}{{first, "read"}, {both, "read"}, {first, "decode"}, {both, "decode"}} {
			r, err := ask(what.who, what.command+" "+strconv.Itoa(m.generate))
			if err != nil {
				return err
			}
			rate[i] = r
		}
		loop, gain := rate[1]/rate[0], rate[3]/rate[2]
		shares, gains, loops = append(shares, gain/loop), append(gains, gain), append(loops, loop)
	}
	m.table.add(line{name: m.name + " two workers ÷ one", unit: "×", ours: median(gains), ratio: median(shares), goal: "0.95 of the loops'",
		beside: fmt.Sprintf("two bare loops reach %.2f × one; medians of %d turns", median(loops), m.pairs)})
	return nil
}

// other is this program in another process, tied to one processor.
type other struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startOther(m *measured, processor int) (*other, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o := &other{cmd: exec.Command(self, "child", "-dir", m.dir, "-form", m.name, "-isa", m.isa, "-cpu", strconv.Itoa(processor), "-tokens", strconv.Itoa(m.generate))}
	o.cmd.Stderr = os.Stderr
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if o.in, err = o.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	o.out = bufio.NewReader(out)
	if err := o.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := o.out.ReadString('\n'); err != nil {
		return nil, fmt.Errorf("a second worker did not start: %w", err)
	}
	return o, nil
}

func (o *other) stop() {
	_ = o.in.Close() // it ends with its input
	_ = o.cmd.Wait()
}

// ask has processes do the same at the same time, and adds up their rates.
func ask(who []*other, command string) (sum float64, err error) {
	for _, o := range who {
		if _, err := fmt.Fprintln(o.in, command); err != nil {
			return 0, err
		}
	}
	for _, o := range who {
		text, err := o.out.ReadString('\n')
		if err != nil {
			return 0, err
		}
		rate, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return 0, err
		}
		sum += rate
	}
	return sum, nil
}

// child is the other process: it loads a model, says so, and answers "read" and
// "decode N" with a rate until its input ends.
func child(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("child", flag.ContinueOnError)
	dir, name, isa := flags.String("dir", "", "model"), flags.String("form", "", "form"), flags.String("isa", "", "isa")
	processor, tokens := flags.Int("cpu", 0, "processor"), flags.Int("tokens", 128, "tokens")
	if err := flags.Parse(args); err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := tie(*processor); err != nil {
		return err
	}
	format := kernels.FormatBF16
	for _, f := range forms {
		if f.name == *name {
			format = f.format
		}
	}
	o, err := newOurs(*dir, format, cpu.Options{Threads: 1, ISA: *isa}, *tokens)
	if err != nil {
		return err
	}
	defer o.backend.Close()
	loop := cpu.NewReader(1)
	fmt.Fprintln(out, "ready")
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		what, count, _ := strings.Cut(lines.Text(), " ")
		rate := 0.0
		switch what {
		case "read":
			rate = loop.Rate(bareLoop)
		case "decode":
			n, err := strconv.Atoi(count)
			if err != nil {
				return err
			}
			if rate, err = o.decode(n); err != nil {
				return err
			}
		}
		fmt.Fprintln(out, rate)
	}
	return lines.Err()
}
