// Package kubetest stands in for the API server of a Kubernetes cluster, for tests of
// those who follow its objects.
package kubetest
