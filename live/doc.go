// Package live is the state of a house for those who look at it: one stream for each tab
// and for `roundhouse top`, with the verdict and the figures, and what they were. One
// sampler looks, however many look on; what it sends them is made once.
package live
