// Package soak holds the engine to what an operator expects of it after weeks:
// it serves back to back, with clients that leave in the middle, and keeps
// neither memory nor goroutines nor blocks of the cache. Its test runs for two
// minutes; `make soak` runs it for thirty.
package soak
