// Package model turns a model's folder into a program for a backend.
//
// Open reads config.json, finds the architecture in the table of
// architectures.go and looks at the headers of the weight files; it loads no
// weights. From then on everything is known that can be known without them:
// the configuration, the bytes of the weights in each format, the KV cache's
// shape, and every weight that is missing or has another shape than it should.
// Build then loads the weights into a backend and records the program.
//
// # Reading order
//
// Each architecture is one function in a file of its name, which reads like
// its diagram: llama.go, qwen3.go and so on. They are made of the parts in
// stream.go (the residual stream), attention.go, mlp.go and moe.go, and bind
// their weights by name in binder.go. The same function runs twice: once with
// nothing behind it, to check and to count, and once with a backend.
//
// # What supported means
//
// An architecture is in the table if a golden test holds its logits, at every
// position of a sequence that passes its window and its pages, to those of
// Hugging Face transformers within 1e-4 of the greatest; and if a test shows
// that each setting named in the table is really read. A setting of
// config.json that would change the result and is not known here is an error.
package model
