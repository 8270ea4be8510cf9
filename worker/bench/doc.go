// Package bench measures the engine on whole models: how far each weight
// format is from float32, and how fast the demonstration model runs. The
// kernels by themselves are measured in kernels/cpu.
package bench
