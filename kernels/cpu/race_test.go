//go:build race

package cpu_test

// The race detector makes plain Go many times slower and does not see
// assembly; threads are the same in every instruction set, so the best one shows them.
const race = true
