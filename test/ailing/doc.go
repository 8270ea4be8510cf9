// Package ailing makes services ill, one way after another, and looks whether diagnose
// finds what was done to each, and nothing in those that are well: a real door, before
// engines that compute as vLLM does and before our own.
package ailing
