// Package metrics holds histograms and writes the Prometheus text format the
// way Python's client does: floats as Python prints them ("0.0", not "0"),
// because scripts in the field compare these lines as text. It is a leaf.
package metrics
