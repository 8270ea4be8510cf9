// Package metrics is the door's part of the table of metrics: names, labels, and
// the handles that a request needs.
package metrics
