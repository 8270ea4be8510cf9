// Package transfer measures the ways that bytes go between a host and its OpenCL devices:
// up, down, from one device to another, and summed over several. What arrives is compared
// with what was sent, since a link that loses bytes is found nowhere else.
package transfer
