package device

import (
	"os"
	"path/filepath"
)

// Evaluation is the file in which the last evaluation of the machine is kept for reports
// of faults; empty where this user has no folder for such things.
func Evaluation() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "roundhouse", "evaluation.json")
}
