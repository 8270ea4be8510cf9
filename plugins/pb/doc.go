// Package pb is generated from plugins/proto by `make proto`; the .proto files are
// the reference.
package pb
