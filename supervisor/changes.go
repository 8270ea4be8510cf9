package supervisor

import "roundhouse/configs"

// Changes lists the paths in which two configurations differ, in order.
func Changes(old, next *configs.Config) []string { return changed(old, next) }
