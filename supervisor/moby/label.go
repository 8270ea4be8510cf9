package moby

import (
	"strconv"

	"roundhouse/supervisor/driver"
)

// The labels of containers and services.
const (
	LabelInstance   = "roundhouse.instance"
	LabelPool       = "roundhouse.pool"
	LabelWorker     = "roundhouse.worker"
	LabelHash       = "roundhouse.config_hash"
	LabelGeneration = "roundhouse.generation"
	LabelURL        = "roundhouse.url"
	LabelImage      = "roundhouse.image" // as the configuration names it
)

// Labels are those of the configuration, and ours over them.
func Labels(spec driver.Spec, instance string) map[string]string {
	labels := map[string]string{}
	for k, v := range spec.Container.Labels {
		labels[k] = v
	}
	labels[LabelInstance], labels[LabelPool], labels[LabelWorker] = instance, spec.Pool, spec.ID()
	labels[LabelHash], labels[LabelGeneration] = spec.Hash, strconv.FormatUint(spec.Generation, 10)
	return labels
}
