// Package drivertest is what the tests of the drivers of containers and of Swarm
// services share: how they wait, how they look, and of what their images are made.
package drivertest
