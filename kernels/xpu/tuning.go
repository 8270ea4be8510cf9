package xpu

import (
	"roundhouse/kernels"
	"roundhouse/kernels/xpu/cl"
)

// Tuning holds what is decided when the kernels are compiled.
type Tuning struct {
	Split int // sub-groups that share the columns of one dot product
	Rows  int // rows of a group of a linear with many rows

	// Of the matrix unit. Lanes 0: kernels without one.
	Lanes int  // of a sub-group: 8 on Xe-HPG, 16 on Xe-HPC and Xe2
	Tiles int  // of 8 rows, in a group of a linear with many rows
	DPAS  bool // the unit itself; false: the same arithmetic in plain C
}

// tuningOf is the table of tunings. On a CPU a work-group is a loop, so that few
// slices are enough; a GPU hides the latency of memory with several.
func tuningOf(d cl.Device) Tuning {
	t := Tuning{Split: 8, Rows: 8}
	if d.Kind == cl.CPU {
		t = Tuning{Split: 2, Rows: 4}
	}
	if d.Has("cl_intel_subgroup_matrix_multiply_accumulate") {
		t.Split, t.Lanes, t.Tiles, t.DPAS = 4, 16, 4, true
		for _, n := range d.SubGroups {
			if n == 8 {
				t.Lanes, t.Tiles = 8, 2
			}
		}
	}
	return t
}

// matrix says whether a format's linear goes to the matrix unit.
func (t Tuning) matrix(f kernels.Format) bool {
	return t.Lanes > 0 && f != kernels.FormatF32 && f != kernels.FormatF16
}

// tiles is the tiles of 8 rows in a group with many rows. Sub-groups of 8 have
// registers for two where nothing is widened or scaled on the way.
func (t Tuning) tiles(f kernels.Format) int {
	if t.Lanes == 8 && f != kernels.FormatBF16 {
		return 1
	}
	return t.Tiles
}

// group is the work-items of one group of a linear, and the rows that it computes.
func (t Tuning) group(f kernels.Format, many bool) (items, rows int) {
	switch {
	case t.matrix(f) && many:
		return t.Lanes * t.Split, 8 * t.tiles(f)
	case t.matrix(f):
		return t.Lanes * t.Split, 1
	case many:
		return tile * t.Split, t.Rows
	}
	return tile * t.Split, 1
}

// options are what the kernels are compiled with. Nothing that loosens arithmetic is
// among them: masks are infinite, and integer linears are held to equal bits.
func (t Tuning) options() string {
	if t.DPAS {
		return "-cl-std=CL2.0 -DDPAS"
	}
	return "-cl-std=CL2.0"
}
