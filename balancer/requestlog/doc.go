// Package requestlog writes requests and answers to a file, where an operator asks for
// it. It delays no request: lines wait in bounded memory, and are dropped and counted if
// the disk does not keep up.
package requestlog
