package balancer

import (
	"time"

	"roundhouse/configs"
)

// defaultDoor stands in for what a worker set leaves out.
var defaultDoor = configs.Door{
	Policy: "least_kv", Memory: 4 << 30, Metrics: "listen",
	Limits: configs.Limits{
		Body: 64 << 20, Headers: 64 << 10, HeaderRead: configs.Duration(10 * time.Second), BodyIdle: configs.Duration(30 * time.Second),
		UploadRate: 1 << 10, FirstByte: configs.Duration(10 * time.Minute), Idle: configs.Duration(10 * time.Minute), Connections: 20000,
	},
	Queue:   configs.Queue{MaxRequests: 2048, MaxWait: configs.Duration(time.Minute)},
	Retry:   configs.Retry{Attempts: 2, Budget: 0.2},
	Resume:  configs.Resume{Enabled: true},
	Breaker: configs.Breaker{Failures: 5, Open: configs.Duration(10 * time.Second)},
}

// filled returns a door's configuration with zero limits replaced by the
// defaults. Switches and shares are taken as they are.
func filled(c configs.Door) configs.Door {
	def := &defaultDoor
	or(&c.Memory, def.Memory)
	or(&c.Metrics, def.Metrics)
	or(&c.Limits.Body, def.Limits.Body)
	or(&c.Limits.Headers, def.Limits.Headers)
	or(&c.Limits.HeaderRead, def.Limits.HeaderRead)
	or(&c.Limits.BodyIdle, def.Limits.BodyIdle)
	or(&c.Limits.UploadRate, def.Limits.UploadRate)
	or(&c.Limits.FirstByte, def.Limits.FirstByte)
	or(&c.Limits.Idle, def.Limits.Idle)
	or(&c.Limits.Connections, def.Limits.Connections)
	or(&c.Queue.MaxRequests, def.Queue.MaxRequests)
	or(&c.Queue.MaxWait, def.Queue.MaxWait)
	or(&c.Breaker.Failures, def.Breaker.Failures)
	or(&c.Breaker.Open, def.Breaker.Open)
	return c
}

func or[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
