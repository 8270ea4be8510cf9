// Package pods rotates the pods of a cluster: on a schedule or when asked, one after the
// other, by eviction, as their disruption budgets allow.
//
// A turn asks whether the pod may be evicted, marks it (all doors then send it nothing
// new, and move its streams at the mark's time), evicts it once it is idle, and waits for
// a pod that takes its place, is ready and stays so. Whoever owns the pods replaces them;
// nothing here knows Deployments or StatefulSets, and nothing begins while a pod of the
// pool is missing, leaving or not ready, as in its owner's own rollout.
//
// Next decides, without clock, lock or I/O. A Rotator acts, in each door; the holder of the
// pool's Lease alone. The Lease also has the State, which is written before anything is
// done, so that another door goes on from the same place.
package pods
