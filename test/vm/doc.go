// Package vm watches what a machine at hand does not have and a virtual one has: several
// memory nodes, render nodes with a real driver, control groups of version 2, and an
// engine of an ordinary user's that was handed them. `make test-vm` makes the machine of
// Debian's packages (image), boots it in QEMU (run JOB), and runs a job of guest in it,
// with programs and tests that were built outside:
//
//   - numa: four memory nodes, one of them without processors, and two GPUs.
//   - docker: root's engine and a user's, under control groups of version 2.
//
// Where the processor lends no virtualisation QEMU emulates it, ten to twenty times
// slower. Tests that only hold there have the build tag vm.
package vm
