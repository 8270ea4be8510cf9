package cl

import "fmt"

// Error is what a call of OpenCL answered.
type Error struct {
	Call string // as in the library, e.g. "clCreateBuffer"
	Code int32
}

// The codes that a caller acts on.
const (
	deviceNotFound     = -1
	memAllocationFail  = -4
	outOfResources     = -5
	outOfHostMemory    = -6
	buildProgramFailed = -11
	platformNotFound   = -1001
)

var words = map[int32]string{
	deviceNotFound:     "device not found",
	-2:                 "device not available",
	-3:                 "compiler not available",
	memAllocationFail:  "the device is out of memory",
	outOfResources:     "out of resources: the device ran out of memory, or was lost",
	outOfHostMemory:    "out of host memory",
	-7:                 "profiling information not available",
	-9:                 "image format mismatch",
	buildProgramFailed: "the program did not build",
	-12:                "map failed",
	-14:                "an earlier command failed: the device was lost, or a kernel read beyond its memory",
	-30:                "invalid value",
	-33:                "invalid device",
	-34:                "invalid context",
	-36:                "invalid command queue: the device was lost",
	-38:                "invalid memory object",
	-42:                "invalid binary",
	-43:                "invalid build options",
	-44:                "invalid program",
	-45:                "the program was not built",
	-46:                "no kernel of that name",
	-48:                "invalid kernel",
	-49:                "invalid argument index",
	-50:                "invalid argument value",
	-51:                "invalid argument size",
	-52:                "not all arguments of the kernel are set",
	-53:                "invalid work dimension",
	-54:                "invalid work group size",
	-55:                "invalid work item size",
	-61:                "invalid buffer size: larger than the device allows in one piece",
	-63:                "invalid global work size",
	platformNotFound:   "no OpenCL driver is installed",
}

func (e *Error) Error() string {
	if w := words[e.Code]; w != "" {
		return fmt.Sprintf("%s: %s (%d)", e.Call, w, e.Code)
	}
	return fmt.Sprintf("%s: error %d", e.Call, e.Code)
}

// OutOfMemory reports whether the device had no room.
func (e *Error) OutOfMemory() bool {
	return e.Code == memAllocationFail || e.Code == outOfResources || e.Code == outOfHostMemory
}

// check makes an error of a result.
func check(call string, code int32) error {
	if code == 0 {
		return nil
	}
	return &Error{Call: call, Code: code}
}
