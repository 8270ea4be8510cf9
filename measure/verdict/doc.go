// Package verdict says how a house of workers does, in one sentence and with what to do
// about it, and holds the thresholds that verdict, alerts and diagnosis share. It is
// pure: facts go in, and what is remembered between two looks is when something began.
package verdict
