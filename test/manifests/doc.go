// Package manifests holds deploy/kubernetes and the chart of deploy/helm to each other, to
// the types of Kubernetes and of the gateways, and to the program, with the real kustomize
// and helm.
package manifests
