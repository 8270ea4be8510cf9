package device

import (
	"archive/tar"
	"compress/bzip2"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// recordings is where test/prepare puts the trees that the tests of hwloc have, of
// machines with up to 256 processors, and what its lstopo makes of each.
const recordings = "../../build/hwloc/linux"

// found is what lstopo finds.
type found struct {
	nodes map[int]Node
	cores map[string]bool  // the processors of each
	near  map[string][]int // the processors beside each device of the bus
	pus   []int            // all processors that may be used
	bound bool             // a control group may forbid it nodes, which it leaves out
}

// Every machine of which the recordings have a tree is read as lstopo reads it: the
// memory nodes with their processors and their memory, the cores with their
// hyper-threads, and what is beside each graphics device.
func TestRecordedMachines(t *testing.T) {
	files, err := filepath.Glob(recordings + "/*.output")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no recordings are here (test/prepare fetches them: Debian's source package of hwloc)")
	}
	trees, nodes, cores, gpus := 0, 0, 0, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".output")
		if why := leftOut(name); why != "" {
			t.Logf("%s is left out: %s", name, why)
			continue
		}
		t.Run(name, func(t *testing.T) {
			want, err := lstopo(file)
			if err != nil {
				t.Fatal(err)
			}
			root := unpack(t, name)
			m := Read(root, want.pus)
			compareNodes(t, m, want)
			compareCores(t, m, want)
			if _, told := os.Stat(filepath.Join(recordings, name+".env")); told != nil { // which may say what is beside what
				for _, g := range m.GPUs {
					compareGPU(t, m, g, want)
				}
			}
			trees, nodes, cores, gpus = trees+1, nodes+len(m.Nodes), cores+len(m.Cores), gpus+len(m.GPUs)
			plan(t, m)
		})
	}
	t.Logf("%d recordings as lstopo has them: %d memory nodes, %d cores, %d graphics devices", trees, nodes, cores, gpus)
}

// leftOut says why a recording's expectation is of no use here; empty: it is.
func leftOut(name string) string {
	options, _ := os.ReadFile(filepath.Join(recordings, name+".options")) // most have none
	for _, o := range []string{"--merge", "--ignore", "--filter all:structure"} {
		if strings.Contains(string(options), o) {
			return "lstopo is told to leave out levels (" + o + ")"
		}
	}
	if env, _ := os.ReadFile(filepath.Join(recordings, name+".env")); strings.Contains(string(env), "HWLOC_DEBUG") {
		return "lstopo is told to take nodes that overlap as they are"
	}
	return ""
}

func compareNodes(t *testing.T, m Machine, want found) {
	t.Helper()
	for _, n := range m.Nodes {
		w, ok := want.nodes[n.ID]
		cpus := both(n.CPUs, want.pus)
		switch {
		case !ok && (len(cpus) == 0 || n.MemoryBytes == 0 || want.bound):
		case !ok:
			t.Errorf("node %d with %s: lstopo has none", n.ID, FormatList(n.CPUs))
		case len(n.CPUs) > 0 && !slices.Equal(cpus, w.CPUs):
			t.Errorf("node %d: processors %s; lstopo %s", n.ID, FormatList(cpus), FormatList(w.CPUs))
		case n.MemoryBytes >= 0 && w.MemoryBytes != n.MemoryBytes:
			t.Errorf("node %d: %d kB; lstopo %d kB", n.ID, n.MemoryBytes>>10, w.MemoryBytes>>10)
		}
	}
	for id := range want.nodes {
		if !slices.ContainsFunc(m.Nodes, func(n Node) bool { return n.ID == id }) {
			t.Errorf("node %d of lstopo's is missing", id)
		}
	}
}

func compareCores(t *testing.T, m Machine, want found) {
	t.Helper()
	have, more, missing := map[string]bool{}, []string{}, []string{}
	for _, c := range m.Cores {
		text := FormatList(c.CPUs)
		have[text] = true
		if len(want.cores) > 0 && !want.cores[text] {
			// What the kernel calls the hyper-threads of one core may be two cores that
			// share what a core needs (AMD's family 15h): they stay together here.
			for _, cpu := range c.CPUs {
				if one := strconv.Itoa(cpu); want.cores[one] {
					have[one] = true
				} else {
					more = append(more, text)
				}
			}
		}
	}
	for text := range want.cores {
		if !have[text] {
			missing = append(missing, text)
		}
	}
	if len(more)+len(missing) > 0 {
		t.Errorf("cores that lstopo does not have: %.80q; that it has beside: %.80q", more, missing)
	}
}

func compareGPU(t *testing.T, m Machine, g GPU, want found) {
	t.Helper()
	near, ok := want.near[g.PCI]
	if !ok {
		t.Errorf("%s: lstopo has no such device", g.PCI)
		return
	}
	if cpus := both(g.CPUs, want.pus); len(cpus) > 0 && !slices.Equal(cpus, near) {
		t.Errorf("%s is beside %s; lstopo %s", g.PCI, FormatList(cpus), FormatList(near))
	}
	for _, n := range m.Nodes {
		if n.ID == g.Node && len(both(near, n.CPUs)) != len(near) {
			t.Errorf("%s is on node %d with %s; lstopo has it beside %s", g.PCI, n.ID, FormatList(n.CPUs), FormatList(near))
		}
	}
}

// plan makes sure that what was read can be given away: eight workers have cores,
// and no two of them share one while there are enough.
func plan(t *testing.T, m Machine) {
	t.Helper()
	var needs []Need
	for i := range 8 {
		needs = append(needs, Need{ID: fmt.Sprint("w", i)})
	}
	places, err := m.Plan(needs)
	if err != nil {
		t.Error(err)
	}
	owner := map[int]string{}
	for id, p := range places {
		if len(p.CPUs) == 0 {
			t.Errorf("%s has no processor", id)
		}
		for _, c := range p.CPUs {
			if other := owner[c]; other != "" && len(m.Cores) > len(needs) {
				t.Errorf("processor %d is that of %s and of %s", c, other, id)
			}
			owner[c] = id
		}
		for _, n := range p.Nodes {
			if i := slices.IndexFunc(m.Nodes, func(x Node) bool { return x.ID == n }); len(m.Nodes[i].CPUs) == 0 {
				t.Errorf("%s takes memory from node %d, which has no processor", id, n)
			}
		}
	}
}

func both(a, b []int) []int {
	var out []int
	for _, x := range a {
		if slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}

// unpack writes a recording's tree, as far as it is read, and returns its /sys.
func unpack(t *testing.T, name string) string {
	t.Helper()
	source := name + ".tar.bz2"
	if text, err := os.ReadFile(filepath.Join(recordings, name+".source")); err == nil {
		source = strings.TrimSpace(string(text))
	}
	f, err := os.Open(filepath.Join(recordings, source))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	root := t.TempDir()
	for r := tar.NewReader(bzip2.NewReader(f)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(root, "sys")
		}
		if err != nil {
			t.Fatal(err)
		}
		_, inside, _ := strings.Cut(path.Clean(h.Name), "/")
		to := filepath.Join(root, inside)
		if aCPU.MatchString(inside) {
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if !wanted.MatchString(inside) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			data, err := io.ReadAll(r)
			if err == nil {
				err = os.WriteFile(to, data, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		case tar.TypeSymlink:
			if err := os.Symlink(h.Linkname, to); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What of a tree is read.
var (
	wanted = regexp.MustCompile(`^sys/(devices/system/(cpu/online$|cpu/cpu\d+/(online$|topology/thread_siblings)|node/node\d+/(cpulist|cpumap|meminfo)$)|bus/pci/devices/.|devices/.*/(class|vendor|numa_node|local_cpu\w+|resource|driver)$)`)
	aCPU   = regexp.MustCompile(`^sys/devices/system/cpu/cpu\d+$`)
)

// lstopo reads what lstopo has written, as text or as XML.
func lstopo(file string) (found, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return found{}, err
	}
	out := found{nodes: map[int]Node{}, cores: map[string]bool{}, near: map[string][]int{}}
	var root *object
	if strings.HasPrefix(string(data), "<?xml") {
		var t struct {
			Object object `xml:"object"`
		}
		err := xml.Unmarshal(data, &t)
		root = &t.Object
		if err != nil {
			return out, err
		}
	} else {
		root = parseText(string(data))
	}
	out.bound = grouped.Match(data)
	root.walk(&out, root)
	slices.Sort(out.pus)
	if len(out.pus) == 0 {
		return out, fmt.Errorf("%s: no processor", file)
	}
	return out, nil
}

// object is a level of lstopo's tree.
type object struct {
	Type     string   `xml:"type,attr"`
	Index    int      `xml:"os_index,attr"`
	Memory   int64    `xml:"local_memory,attr"` // bytes
	Bus      string   `xml:"pci_busid,attr"`
	Children []object `xml:"object"`
}

// cpus are the processors under an object.
func (o *object) cpus() (out []int) {
	if o.Type == "PU" {
		out = append(out, o.Index)
	}
	for i := range o.Children {
		out = append(out, o.Children[i].cpus()...)
	}
	slices.Sort(out)
	return out
}

// walk collects what is under an object. near is the closest one above that is no
// part of a bus.
func (o *object) walk(out *found, near *object) {
	switch o.Type {
	case "PU":
		out.pus = append(out.pus, o.Index)
	case "Core":
		out.cores[FormatList(o.cpus())] = true
	case "NUMANode":
		out.nodes[o.Index] = Node{ID: o.Index, CPUs: near.cpus(), MemoryBytes: o.Memory}
	case "PCIDev", "PCI":
		out.near[o.Bus] = near.cpus()
	}
	if !slices.Contains([]string{"HostBridge", "Bridge", "PCIBridge", "PCIDev", "PCI", "NUMANode", "MemCache", "OSDev"}, o.Type) {
		near = o
	}
	for i := range o.Children {
		o.Children[i].walk(out, near)
	}
}

// grouped finds a control group other than that of all.
var grouped = regexp.MustCompile(`LinuxCgroup(=|" value=")/\w`)

var (
	textLine  = regexp.MustCompile(`^( *)([^\s(]+)(?:\(\w+\))?(?: L#\d+)?(.*)$`)
	textIndex = regexp.MustCompile(`\(P#(\d+)`)
	textLocal = regexp.MustCompile(`local=(\d+)KB`)
	textBus   = regexp.MustCompile(`busid=(\S+)`)
)

// parseText reads lstopo's own format, two spaces a level.
func parseText(text string) *object {
	top := &object{Type: "Machine"}
	type level struct {
		at int
		o  *object
	}
	stack := []level{{-1, top}}
	for line := range strings.Lines(text) {
		m := textLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || strings.HasPrefix(line, "depth") || strings.HasPrefix(line, "Special") {
			break // the summary
		}
		o := object{Type: m[2]}
		if x := textIndex.FindStringSubmatch(m[3]); x != nil {
			o.Index, _ = strconv.Atoi(x[1])
		}
		if x := textLocal.FindStringSubmatch(m[3]); x != nil {
			kb, _ := strconv.ParseInt(x[1], 10, 64)
			o.Memory = kb << 10
		}
		if x := textBus.FindStringSubmatch(m[3]); x != nil {
			o.Bus = x[1]
		}
		for stack[len(stack)-1].at >= len(m[1]) {
			stack = stack[:len(stack)-1]
		}
		above := stack[len(stack)-1].o
		above.Children = append(above.Children, o)
		stack = append(stack, level{len(m[1]), &above.Children[len(above.Children)-1]})
	}
	return top
}
