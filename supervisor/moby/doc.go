// Package moby holds what the drivers of containers and of a Swarm's services and the
// guard before an engine's socket share: the labels by which a worker is known, how its
// program is told its model and its port, where an engine is and how it is connected to.
package moby
