package evaluate

import (
	"cmp"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"roundhouse/worker/device"
)

// memory measures every node's memory from every node's processors.
func memory(nodes []device.Node, cores []device.Core, o Options) (paths []Path, err error) {
	for _, from := range nodes {
		cpus := firsts(cores, from.ID)
		if len(cpus) == 0 {
			continue
		}
		for _, of := range nodes {
			if of.MemoryBytes == 0 {
				continue
			}
			p := Path{CPUs: from.ID, Memory: of.ID, Threads: len(cpus)}
			if p.Rate, err = copied(cpus, of.ID, len(nodes) == 1, o); err != nil {
				return paths, err
			}
			if p.Latency, err = chased(cpus[0], of.ID, len(nodes) == 1, o); err != nil {
				return paths, err
			}
			paths = append(paths, p)
		}
	}
	return paths, nil
}

// firsts is one processor of each core of a node.
func firsts(cores []device.Core, node int) (cpus []int) {
	for _, c := range cores {
		if c.Node == node && len(c.CPUs) > 0 {
			cpus = append(cpus, c.CPUs[0])
		}
	}
	return cpus
}

// together runs something on a thread of its own on each processor and waits for all.
// Where one processor cannot be had nothing runs: the others would wait for it.
func together(cpus []int, run func(rank int) error) error {
	tied, ran := make([]error, len(cpus)), make([]error, len(cpus))
	var ready, done sync.WaitGroup
	ready.Add(len(cpus))
	for rank, cpu := range cpus {
		done.Go(func() {
			runtime.LockOSThread() // and never let go: the thread ends with its goroutine
			tied[rank] = tie(cpu)
			ready.Done()
			ready.Wait()
			if errors.Join(tied...) == nil {
				ran[rank] = run(rank)
			}
		})
	}
	done.Wait()
	return cmp.Or(errors.Join(tied...), errors.Join(ran...))
}

// copied is the bytes a second that all processors of a node read and write together.
func copied(cpus []int, node int, only bool, o Options) (float64, error) {
	size := o.Bytes / len(cpus) &^ 4095
	var all []([]byte)
	defer func() {
		for _, m := range all {
			unmap(m)
		}
	}()
	for range 2 * len(cpus) {
		m, err := pages(size, node, only)
		if err != nil {
			return 0, err
		}
		all = append(all, m)
	}
	var rates []float64
	for began := time.Now(); len(rates) < 3 || time.Since(began) < o.Time; {
		from := time.Now()
		if err := together(cpus, func(rank int) error {
			for range o.Rounds {
				copy(all[2*rank], all[2*rank+1])
			}
			return nil
		}); err != nil {
			return 0, err
		}
		rates = append(rates, float64(2*size*len(cpus)*o.Rounds)/time.Since(from).Seconds())
	}
	slices.Sort(rates)
	return rates[len(rates)/2], nil
}

// chased is the time of one read whose address is what the last one read.
func chased(cpu, node int, only bool, o Options) (seconds float64, err error) {
	const line = 64
	m, err := pages(o.Bytes/4&^4095, node, only)
	if err != nil {
		return 0, err
	}
	defer unmap(m)
	ring(m, line)
	err = together([]int{cpu}, func(int) error {
		steps := min(len(m)/line, 1<<18)
		at := uint64(0)
		var best time.Duration
		for range 3 {
			from := time.Now()
			for range steps {
				at = binary.LittleEndian.Uint64(m[at:])
			}
			if took := time.Since(from); best == 0 || took < best {
				best = took
			}
		}
		last = at
		seconds = best.Seconds() / float64(steps)
		return nil
	})
	return seconds, err
}

// last keeps the compiler from leaving the reads out.
var last uint64

// ring makes one circle through all lines of so many bytes, in an order that no
// processor guesses: each begins with the place of the next one.
func ring(m []byte, line int) {
	n := len(m) / line
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	seed := uint64(88172645463325252)
	for i := n - 1; i > 0; i-- {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		k := int(seed % uint64(i+1))
		order[i], order[k] = order[k], order[i]
	}
	for i, at := range order {
		binary.LittleEndian.PutUint64(m[int(at)*line:], uint64(order[(i+1)%n])*uint64(line))
	}
}
