package xpu

import (
	"fmt"
	"slices"
	"strings"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu/cl"
)

// Tuning holds what is decided when the kernels are compiled.
type Tuning struct {
	Split int // sub-groups that share the columns of one dot product
	Rows  int // rows of a group of a linear with many rows

	Queries int // that a group of attention serves; a power of two up to 64

	Unroll bool // loops over registers: PoCL 3.1 computes wrong sums where they are

	// Of the matrix unit. Lanes 0: kernels without one.
	Lanes   int  // of a sub-group: 8 on Xe-HPG, 16 on Xe-HPC and Xe2
	Tiles   int  // of 8 rows, that a sub-group of a linear with many rows computes
	Columns int  // of 16 outputs, likewise
	DPAS    bool // the unit itself; false: the same arithmetic in plain C

	count bool // for tests: kernels that decode count the bytes that they move
}

func (t Tuning) String() string {
	if t.Lanes == 0 {
		return fmt.Sprintf("split %d, %d rows, %d queries", t.Split, t.Rows, t.Queries)
	}
	return fmt.Sprintf("split %d, %d queries, %d lanes, %d by %d tiles", t.Split, t.Queries, t.Lanes, t.Tiles, t.Columns)
}

// tuningOf is the table of tunings. On a CPU a work-group is a loop, so that few
// slices are enough; a GPU hides the latency of memory with several. Intel's driver of
// the CPU takes a GPU's kernels, which it shows to be right.
func tuningOf(d cl.Device) Tuning {
	switch {
	case d.Has("cl_intel_subgroup_matrix_multiply_accumulate") && slices.Contains(d.SubGroups, 8):
		return matrixTuning(8)
	case d.Has("cl_intel_subgroup_matrix_multiply_accumulate"):
		return matrixTuning(16)
	case d.Kind == cl.CPU && !d.Intels():
		return Tuning{Split: 2, Rows: 4, Queries: 8}
	}
	return plainTuning
}

// plainTuning is that of a GPU without the matrix unit.
var plainTuning = Tuning{Split: 8, Rows: 8, Queries: 8, Unroll: true}

// GPU is a GPU that kernels are compiled for ahead of time.
type GPU struct {
	Device string // as ocloc calls it
	Tuning Tuning
}

// GPUs are the GPUs that kernels are compiled for ahead of time, with their tuning:
// Xe-HPG (Arc A), Xe-HPC, whose 16 lanes stand for Xe2 (Arc B) as well, and Xe-LP, which
// stands for GPUs without the matrix unit.
func GPUs() []GPU {
	return []GPU{
		{"acm-g10", matrixTuning(8)},
		{"pvc", matrixTuning(16)},
		{"tgllp", plainTuning},
	}
}

// newer are GPUs that came after the ocloc of some distributions; their kernels are those of
// 16 lanes, whose SPIR-V they take.
var newer = []string{"bmg-g21", "bmg-g31", "lnl-m", "ptl-h"}

// Checked are the GPUs that kernels can be compiled for with a compiler: GPUs, and of newer
// ones those that it knows.
func Checked(knows func(device string) bool) []GPU {
	all := GPUs()
	for _, name := range newer {
		if knows(name) {
			all = append(all, GPU{name, matrixTuning(16)})
		}
	}
	return all
}

// Options are those that a module is compiled with for Intel's GPUs.
func (t GPU) Options(m Module) string { return m.Options + intelOptions }

// matrixTuning is that of a GPU with the matrix unit.
func matrixTuning(lanes int) Tuning {
	return Tuning{Split: 4, Rows: 8, Queries: 8, Unroll: true, Lanes: lanes, Tiles: lanes / 4, Columns: 2, DPAS: true}
}

// usesMatrix reports whether a module's kernels use the matrix unit.
func (t Tuning) usesMatrix(m Module) bool {
	for _, l := range linears {
		if strings.HasPrefix(m.Name, "linear_"+strings.ToLower(l.macro)+"_") {
			return t.matrix(l.format)
		}
	}
	return false
}

// matrix reports whether a format's linear goes to the matrix unit.
func (t Tuning) matrix(f kernels.Format) bool {
	return t.Lanes > 0 && f != kernels.FormatF32 && f != kernels.FormatF16
}

// shape is the tiles of 8 rows and of 16 columns that a sub-group computes of many rows.
// What is widened on the way has registers for half as many.
func (t Tuning) shape(f kernels.Format) (rows, columns int) {
	if f == kernels.FormatFP8 || f == kernels.FormatMXFP4 {
		return max(1, t.Tiles/2), t.Columns
	}
	return t.Tiles, t.Columns
}

// height is the rows of a group of a linear without the matrix unit; what is widened on
// the way leaves registers for half as many.
func (t Tuning) height(f kernels.Format) int {
	if f == kernels.FormatMXFP4 {
		return max(1, t.Rows/2)
	}
	return t.Rows
}

// group is the work-items of one group of a linear, and the rows and the tiles of 16
// columns that it computes.
func (t Tuning) group(f kernels.Format, many bool) (items, rows, columns int) {
	switch {
	case t.matrix(f) && many:
		rows, columns := t.shape(f)
		return t.Lanes * subGroups, 8 * rows, subGroups * columns
	case t.matrix(f):
		return t.Lanes * t.Split, 1, 1
	case many:
		return tile * t.Split, t.height(f), 1
	}
	return tile * t.Split, 1, 1
}

// subGroups is how many sub-groups of a linear with many rows share a group.
const subGroups = 4

// options are what the kernels are compiled with. Nothing that loosens arithmetic is
// among them: masks are infinite, and integer linears are held to equal bits.
func (t Tuning) options() string {
	if t.count {
		return "-cl-std=CL2.0 -DCOUNT"
	}
	if t.DPAS {
		return "-cl-std=CL2.0 -DDPAS"
	}
	return "-cl-std=CL2.0"
}

// intelOptions are those of Intel's GPUs besides: pages may lie in a buffer beyond
// 4 GiB, which the compiler has to be told.
const intelOptions = " -cl-intel-greater-than-4GB-buffer-required"

// optionsOn are options as a device takes them. A driver of OpenCL 3.0 need not know the
// language of 2.0: NVIDIA's does not.
func optionsOn(d cl.Device, options string) string {
	if !slices.Contains(d.Languages, "2.0") {
		for _, v := range []string{"3.0", "1.2"} {
			if slices.Contains(d.Languages, v) {
				options = strings.Replace(options, "-cl-std=CL2.0", "-cl-std=CL"+v, 1)
				break
			}
		}
	}
	if d.Kind == cl.GPU && d.Intels() {
		options += intelOptions
	}
	return options
}

// largeRegisters gives a thread twice the registers, and a core half the threads: for
// kernels that compute more than they wait.
const largeRegisters = " -cl-intel-256-GRF-per-thread"
