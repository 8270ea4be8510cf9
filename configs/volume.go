package configs

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Volume is one of a container's volumes, read as compose writes it.
type Volume struct {
	Source      string // a folder of the host, or a volume's name; empty: a new volume
	Target      string
	ReadOnly    bool
	Propagation string // of a folder; empty: private
}

// Bind reports whether it is a folder of the host.
func (v Volume) Bind() bool { return strings.HasPrefix(v.Source, "/") }

// ParseVolume reads "SOURCE:TARGET[:ro]", with an absolute folder or a volume's
// name as source, or "TARGET" alone.
func ParseVolume(text string) (Volume, error) {
	bad := func(why string) (Volume, error) {
		return Volume{}, fmt.Errorf(`%q: %s; write "/folder:/target", "/folder:/target:ro" or "name:/target"`, text, why)
	}
	parts := strings.Split(text, ":")
	v := Volume{}
	switch len(parts) {
	case 1:
		v.Target = parts[0]
	case 2, 3:
		v.Source, v.Target = parts[0], parts[1]
	default:
		return bad("too many colons")
	}
	if !path.IsAbs(v.Target) || path.Clean(v.Target) == "/" {
		return bad("the target is a folder of the container, from its root")
	}
	if len(parts) > 1 && !v.Bind() && !goodName.MatchString(v.Source) {
		return bad("the source is neither a folder from the root nor a volume's name")
	}
	if len(parts) < 3 {
		return v, nil
	}
	for option := range strings.SplitSeq(parts[2], ",") {
		switch {
		case option == "ro":
			v.ReadOnly = true
		case option == "rw":
		case v.Bind() && slices.Contains([]string{"private", "rprivate", "shared", "rshared", "slave", "rslave"}, option):
			v.Propagation = option
		default:
			return bad(fmt.Sprintf("there is no option %q here", option))
		}
	}
	return v, nil
}
