package kube

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// drainMark is the annotation of a pod that is about to be replaced: until when its
// requests may run there. All doors see it and send the pod nothing new.
const drainMark = "roundhouse.dev/drain"

// deletionCost has an owner that scales down take the pods that are drained already.
const deletionCost = "controller.kubernetes.io/pod-deletion-cost"

func podPath(namespace, name string) string {
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods/" + url.PathEscape(name)
}

// Evict asks for a pod's eviction, which its PodDisruptionBudgets may refuse (429). A dry
// run only tells. The pod of that name with another uid is left alone (409).
func (c *Client) Evict(ctx context.Context, namespace, name, uid string, dry bool) error {
	options := map[string]any{"preconditions": map[string]string{"uid": uid}}
	if dry {
		options["dryRun"] = []string{"All"}
	}
	return c.do(ctx, http.MethodPost, podPath(namespace, name)+"/eviction", "application/json", map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]string{"name": name, "namespace": namespace}, "deleteOptions": options,
	}, new(any))
}

// Mark has all doors drain a pod until a time, after which they move its streams; the zero
// time takes the mark off. The pod of that name with another uid is left alone (409).
func (c *Client) Mark(ctx context.Context, namespace, name, uid string, until time.Time) error {
	var mark, cost any
	if !until.IsZero() {
		mark, cost = until.UTC().Format(time.RFC3339Nano), "-1000"
	}
	return c.do(ctx, http.MethodPatch, podPath(namespace, name), "application/merge-patch+json", map[string]any{
		"metadata": map[string]any{"uid": uid, "annotations": map[string]any{drainMark: mark, deletionCost: cost}},
	}, new(any))
}
