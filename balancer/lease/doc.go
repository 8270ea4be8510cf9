// Package lease says which supervisor a door obeys and keeps the worker set that
// it obeyed last.
package lease
