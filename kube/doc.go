// Package kube speaks with the API server of a Kubernetes cluster: as much of it as finds
// the pods of a pool and keeps them in view. What was seen last stays, whatever becomes
// of the server.
package kube
