package cpu

// fma is x·y + z, rounded once: the compiler makes one instruction of it here.
func fma(x, y, z float32) float32 { return x*y + z }
