//go:build linux && amd64

// Command amxrun runs a program whose AMX instructions this machine does not
// have:
//
//	amxrun PROGRAM ARGUMENTS…
//
// It traces the program. Where a thread stops at an instruction of AMX, amxrun
// does what the instruction would have done, as Intel's manual defines it, and
// lets the thread go on behind it; everything else runs on the processor. So
// the AMX kernels are tested, to the bit, on machines without the unit. What it
// can't show is their speed.
//
// It knows the instructions that the kernels use: ldtilecfg, tilerelease,
// tilezero, tileloadd, tilestored, tdpbf16ps and tdpbsud.
package main
