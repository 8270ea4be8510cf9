// Package demo holds the demonstration model: a small Qwen3-style decoder in
// plain Hugging Face form, built into the worker so that the quick start and
// the tests need no download.
//
// It was trained by the programs in train/ on text that they generate. It adds
// and subtracts, copies, reverses and sorts words, answers from facts given in
// the prompt, writes fields as JSON, and counts. README.md says how it is asked
// and how well it does.
package demo

import (
	"embed"
	"io/fs"
)

// Name is the model name under which the worker serves the demonstration model.
const Name = "roundhouse-demo"

//go:embed model/*
var files embed.FS

// FS holds config.json, generation_config.json, model.safetensors,
// tokenizer.json and tokenizer_config.json at its root.
var FS = mustSub(files, "model")

func mustSub(f fs.FS, dir string) fs.FS {
	sub, err := fs.Sub(f, dir)
	if err != nil {
		panic("BUG: demo: " + err.Error())
	}
	return sub
}
