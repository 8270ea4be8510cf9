package device

import (
	"path/filepath"
	"strings"
)

// OpenCL says what a machine has of OpenCL, below its root folder: whether the library is
// there, and the drivers that are registered ("intel.icd").
func OpenCL(root string) (library bool, drivers []string) {
	for _, dir := range []string{"usr/lib/*", "usr/lib", "usr/lib64", "usr/local/lib", "opt/intel/oneapi/compiler/latest/lib"} {
		found, _ := filepath.Glob(filepath.Join(root, dir, "libOpenCL.so*"))
		library = library || len(found) > 0
	}
	paths, _ := filepath.Glob(filepath.Join(root, "etc/OpenCL/vendors/*.icd"))
	for _, p := range paths {
		drivers = append(drivers, filepath.Base(p))
	}
	return library, drivers
}

// IntelDriver reports whether one of the drivers is for Intel's GPUs.
func IntelDriver(drivers []string) bool {
	for _, d := range drivers {
		if strings.Contains(strings.ToLower(d), "intel") {
			return true
		}
	}
	return false
}
