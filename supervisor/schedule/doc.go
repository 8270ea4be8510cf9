// Package schedule says when a pool's rotation is due. It takes the meaning of
// the five cron fields and of blackout windows from
// the configuration's own parser and keeps loop, clock, time zone and
// missed runs for itself, so that all of it is a function of times passed in.
//
// A run is named by the clock on the wall of its time zone. In the hour that a
// change to summer time leaves out, the run comes at the moment of the change;
// in the hour that a change to winter time repeats, it comes in the first pass
// alone. So every named time happens once.
package schedule
