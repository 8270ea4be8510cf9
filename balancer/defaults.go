package balancer

import (
	"cmp"

	"roundhouse/configs"
)

// filled returns a door's configuration with the limits that it lacks replaced by
// the defaults. Switches, shares and slow_start are taken as they are: their 0
// turns them off.
func filled(c configs.Door) configs.Door {
	def := configs.DefaultDoor()
	or(&c.Memory, def.Memory)
	or(&c.Metrics, def.Metrics)
	or(&c.Limits.Body, def.Limits.Body)
	or(&c.Limits.Headers, def.Limits.Headers)
	or(&c.Limits.HeaderRead, def.Limits.HeaderRead)
	or(&c.Limits.BodyIdle, def.Limits.BodyIdle)
	or(&c.Limits.UploadRate, def.Limits.UploadRate)
	or(&c.Limits.FirstByte, def.Limits.FirstByte)
	or(&c.Limits.Idle, def.Limits.Idle)
	or(&c.Limits.Upload, def.Limits.Upload)
	or(&c.Limits.Connections, def.Limits.Connections)
	or(&c.Limits.Streams, def.Limits.Streams)
	or(&c.Queue.MaxRequests, def.Queue.MaxRequests)
	or(&c.Queue.MaxWait, def.Queue.MaxWait)
	withBatches(&c.Batches, def.Batches)
	or(&c.Breaker.Failures, def.Breaker.Failures)
	or(&c.Breaker.Open, def.Breaker.Open)
	return c
}

func or[T cmp.Ordered](v *T, def T) {
	var zero T
	if *v <= zero {
		*v = def
	}
}

// withBatches are the figures of batches, with those that are left out filled in.
func withBatches(c *configs.Batches, def configs.Batches) {
	or(&c.Lines, def.Lines)
	or(&c.File, def.File)
	or(&c.Storage, def.Storage)
	or(&c.Keep, def.Keep)
	or(&c.Window, def.Window)
}
