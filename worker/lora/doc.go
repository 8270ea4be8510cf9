// Package lora reads adapters in the form of PEFT: a folder with
// adapter_config.json and adapter_model.safetensors. An adapter corrects
// linears of a model, each by B·A of a low rank, times a factor:
// lora_alpha / r, or lora_alpha / √r with rank-stabilised adapters.
//
// What is in a file is outside input, bounded and checked like a model's. An
// adapter that asks for more than this (DoRA, biases, whole modules of its own,
// weights of the model that were changed in training) is refused with the
// field that says so, since its answers would be others.
package lora
