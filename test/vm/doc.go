// Package vm watches what a machine at hand does not have and a virtual one has: several
// memory nodes, render nodes with a real driver, control groups of version 2. `make
// test-vm` makes the machine of Debian's packages (image), boots it in QEMU (run JOB),
// and runs a job of guest in it, with programs and tests that were built outside:
//
//   - numa: four memory nodes, one of them without processors, and two GPUs.
//   - docker: a Docker engine under control groups of version 2.
//
// Where the processor lends no virtualisation QEMU emulates it, ten to twenty times
// slower; on a machine that is busy beside, its tests can come too late then. Tests that
// only hold there have the build tag vm.
package vm
