//go:build !race

package cpu_test

const race = false
