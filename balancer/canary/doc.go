// Package canary puts a route's new model, an adapter perhaps, on trial: a share of the
// conversations goes to it, the share grows by steps as long as its answers are no worse
// than the others', and goes back to none by itself if they are.
//
// A Trial is the trial of one route, and has neither clock nor network: it is told when
// requests come and how they end. A Book keeps the trials of a door, and writes down where
// they stand.
package canary
