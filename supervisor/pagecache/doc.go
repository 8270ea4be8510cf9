// Package pagecache reads a model's files before the worker that will load
// them is stopped, so that its successor finds them in the kernel's page cache
// and not on the disk. It reads only what the machine has room for.
package pagecache
