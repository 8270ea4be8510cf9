// Package device finds out what a machine has to run workers on: its CPU
// cores and memory nodes, and the GPUs of Intel and NVIDIA, all read from
// sysfs. It plans which worker gets what. It is a leaf: it imports nothing of
// ours, and its root folder is an argument, so that trees in the layout of other
// machines are tests.
package device
