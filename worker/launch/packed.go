package launch

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/worker/model"
)

// noCache is the value of --weights-cache that keeps no packed weights.
const noCache = "off"

// packedDir is where packed weights are kept unless --weights-cache says
// otherwise: none where the environment names no home.
func packedDir(getenv func(string) string) string {
	if dir := getenv("VLLM_CACHE_ROOT"); dir != "" {
		return filepath.Join(dir, "roundhouse")
	}
	if dir := getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "roundhouse")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".cache", "roundhouse")
	}
	return noCache
}

// packedCache is the file for one model in one format. Every model and format
// has a name of its own, so that a new checkpoint replaces what the old one left.
func packedCache(o *Options, m *model.Model) cpu.Cache {
	stamp, ok := m.Stamp(format(o))
	if !ok || o.PackedDir == noCache || o.PackedDir == "" {
		return cpu.Cache{}
	}
	path, err := filepath.Abs(o.Model)
	if err != nil {
		path = o.Model
	}
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, filepath.Base(o.Model))
	digest := sha256.Sum256(fmt.Appendf(nil, "%q %v", path, m.HeadFormat(format(o))))
	return cpu.Cache{Path: filepath.Join(o.PackedDir, fmt.Sprintf("%s-%x-%v.packed", name, digest[:6], format(o))), Key: stamp}
}

// cached reports whether the backend has the weights from an earlier start.
func cached(be kernels.Backend) bool {
	c, ok := be.(interface{ Cached() bool })
	return ok && c.Cached()
}

// keepPacked has the backend write its weights down for the next start, beside
// everything else that it does.
func keepPacked(be kernels.Backend, c cpu.Cache, log *slog.Logger) {
	keeper, ok := be.(interface{ Loaded(func(error)) })
	if !ok || c.Path == "" {
		return
	}
	keeper.Loaded(func(err error) {
		if err != nil {
			log.Warn("the packed weights could not be kept; the next start packs them again", "file", c.Path, "error", err)
			return
		}
		log.Info("the packed weights are kept for the next start", "file", c.Path)
	})
}
