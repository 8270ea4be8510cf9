// Package measure times a backend's kernels one by one: what each reads and computes a
// second, beside a bare copy on the same device. It is what `roundhouse-worker
// bench-kernels` prints and what `roundhouse-worker tune` decides by.
package measure
