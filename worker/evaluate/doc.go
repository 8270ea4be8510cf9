// Package evaluate measures a machine before models run on it: memory from every node's
// processors, products by weight format, links to cards and between them, and sums over
// several. The figures stand beside the machine's own limits, and Suspect names what does
// not fit: a card on a narrow link, a wrong node, a clock held down.
//
// Suspect and Write are pure. Whatever is measured goes through Options, so that machines
// that nobody has here are tests.
package evaluate
