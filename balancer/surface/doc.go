// Package surface is the door as clients see it: the paths that it serves, the
// priorities that they may ask for, and the errors that they get.
package surface
