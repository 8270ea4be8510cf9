// Package adapter writes LoRA adapters of the demonstration model, as PEFT writes
// them, for tests of what serves them.
package adapter
