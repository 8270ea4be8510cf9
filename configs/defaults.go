package configs

import (
	"os"
	"path/filepath"
	"time"
)

// defaults is a Config as an empty file would have it.
func defaults(env func(string) (string, bool)) *Config {
	return &Config{
		StateDir:   defaultStateDir(env, os.Geteuid() == 0),
		Log:        Log{Format: "text", Access: true},
		Door:       DefaultDoor(),
		Admin:      Admin{Listen: "127.0.0.1:8001", Console: "full"},
		Supervisor: Supervisor{Parallel: 1},
	}
}

// DefaultDoor is a door block that sets nothing. The door takes from it what a
// worker set leaves out.
func DefaultDoor() Door {
	return Door{
		Listen:  ":8000",
		Policy:  "least_kv",
		Memory:  4 << 30,
		Metrics: "listen",
		HTTP2:   true,
		Limits: Limits{
			Body: 64 << 20, Headers: 64 << 10,
			HeaderRead: 10 * second, BodyIdle: 30 * second, UploadRate: 1 << 10,
			FirstByte: Duration(10 * time.Minute), Idle: Duration(10 * time.Minute), Upload: 4 << 30,
			Connections: 20000, Streams: 256,
		},
		Queue:  Queue{MaxRequests: 2048, MaxWait: 60 * second},
		Retry:  Retry{Attempts: 2, Budget: 0.2},
		Resume: Resume{Enabled: true},
		Batches: Batches{Concurrency: 8, Lines: 50000, File: 200 << 20, Storage: 20 << 30,
			Keep: Duration(30 * 24 * time.Hour), Window: Duration(7 * 24 * time.Hour)},
		Breaker:   Breaker{Failures: 5, Open: 10 * second},
		SlowStart: 30 * second,
	}
}

// defaultPool is a pool block that sets nothing.
func defaultPool(name string) Pool {
	return Pool{
		Name:          name,
		Driver:        "process",
		Devices:       "auto",
		GPUsPerWorker: 1,
		Rotation: Rotation{
			Strategy:     "in_place",
			DrainTimeout: Duration(10 * time.Minute),
			ReadyTimeout: Duration(15 * time.Minute),
			StopGrace:    60 * second,
			Missed:       "once",
		},
		Scrape:    Scrape{Interval: 250 * millisecond},
		Container: Container{PullPolicy: "missing"},
	}
}

// defaultStateDir is where state goes when the file does not say.
func defaultStateDir(env func(string) (string, bool), root bool) string {
	if root {
		return "/var/lib/roundhouse"
	}
	if dir, ok := env("XDG_STATE_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "roundhouse")
	}
	if home, ok := env("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "roundhouse")
	}
	return filepath.Join(os.TempDir(), "roundhouse")
}
