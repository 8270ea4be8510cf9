package main

import (
	"fmt"
	"slices"
	"strings"

	"roundhouse/balancer/sim"
)

// chosen are the cells that are run: those of the list that -cells asks for, and those
// that it names in full.
func chosen(o options) (list []sim.Cell) {
	for _, c := range cells(o) {
		if named(c.String(), o.cells) {
			list = append(list, c)
		}
	}
	for name := range strings.SplitSeq(o.cells, ",") {
		if c, ok := parse(name, o.traces); ok && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// parse reads a cell's whole name.
func parse(name string, traces []string) (c sim.Cell, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) < 4 || !slices.Contains(sim.Bounds, parts[1]) {
		return c, false
	}
	c.Bound, c.Slow, c.Joins = parts[1], slices.Contains(parts[4:], "slow"), slices.Contains(parts[4:], "joins")
	fmt.Sscanf(parts[2]+" "+parts[3], "%g %gs", &c.Share, &c.Age)
	for _, c.Traffic = range slices.Concat(sim.TrafficNames, traces) {
		if c.String() == name {
			return c, true
		}
	}
	return c, false
}

// cells are where the order of routers shows, and with -all every combination.
func cells(o options) (list []sim.Cell) {
	traffics := append(append([]string{}, sim.TrafficNames...), o.traces...)
	if o.all {
		for _, t := range traffics {
			for _, bound := range sim.Bounds {
				for _, share := range []float64{0.5, 0.8, 0.95, 1.1} {
					for _, age := range []float64{0.1, 1, 5} {
						base := sim.Cell{Traffic: t, Bound: bound, Share: share, Age: age}
						list = append(list, base)
						slow, joins := base, base
						slow.Slow, joins.Joins = true, true
						list = append(list, slow, joins)
					}
				}
			}
		}
		return list
	}
	chats := traffics[0]
	if o.short {
		return []sim.Cell{
			{Traffic: chats, Bound: "prompts", Share: 0.95, Age: 1}, {Traffic: chats, Bound: "kv", Share: 0.95, Age: 1}, {Traffic: "sessions", Bound: "kv", Share: 0.95, Age: 1},
		}
	}
	for _, bound := range sim.Bounds {
		list = append(list, sim.Cell{Traffic: chats, Bound: bound, Share: 0.95, Age: 1})
	}
	for _, t := range traffics[1:] {
		list = append(list, sim.Cell{Traffic: t, Bound: "kv", Share: 0.95, Age: 1})
	}
	for _, t := range o.traces {
		list = append(list, sim.Cell{Traffic: t, Bound: "both", Share: 0.95, Age: 1})
	}
	return append(list,
		sim.Cell{Traffic: chats, Bound: "kv", Share: 0.5, Age: 1}, sim.Cell{Traffic: chats, Bound: "kv", Share: 0.8, Age: 1}, sim.Cell{Traffic: chats, Bound: "kv", Share: 1.1, Age: 1},
		sim.Cell{Traffic: chats, Bound: "kv", Share: 0.95, Age: 0.1}, sim.Cell{Traffic: chats, Bound: "kv", Share: 0.95, Age: 5},
		sim.Cell{Traffic: chats, Bound: "kv", Share: 0.8, Age: 1, Slow: true}, sim.Cell{Traffic: "sessions", Bound: "kv", Share: 0.8, Age: 1, Joins: true})
}
