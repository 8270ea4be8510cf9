package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Right is something that an account may do in a namespace.
type Right struct{ Verb, Group, Resource, Subresource string }

// String is the Right in the words of a Role.
func (r Right) String() string {
	name := r.Resource
	if r.Subresource != "" {
		name += "/" + r.Subresource
	}
	if r.Group != "" {
		name += "." + r.Group
	}
	return r.Verb + " " + name
}

// Rights are what following pods takes, and what rotating them takes beside that, with
// what the doctor reads of it: the one list that manifests are held to.
func Rights(inference, rotates bool) (all []Right) {
	all = []Right{{"list", "", "pods", ""}, {"watch", "", "pods", ""}}
	if inference {
		const group = "inference.networking.k8s.io"
		all = append(all, Right{"list", group, "inferencepools", ""}, Right{"watch", group, "inferencepools", ""})
	}
	if rotates {
		const leases = "coordination.k8s.io"
		all = append(all, Right{"patch", "", "pods", ""}, Right{"create", "", "pods", "eviction"},
			Right{"get", leases, "leases", ""}, Right{"create", leases, "leases", ""}, Right{"update", leases, "leases", ""},
			Right{"list", "policy", "poddisruptionbudgets", ""})
	}
	return all
}

// May asks whether this account has a Right.
func (c *Client) May(ctx context.Context, namespace string, r Right) (bool, error) {
	var answer struct {
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	err := c.do(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json", map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]string{"namespace": namespace, "verb": r.Verb, "group": r.Group, "resource": r.Resource, "subresource": r.Subresource}},
	}, &answer)
	return answer.Status.Allowed, err
}

// Budget is a PodDisruptionBudget.
type Budget struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		MaxUnavailable json.RawMessage `json:"maxUnavailable"` // a number, or a share such as "25%"
		MinAvailable   json.RawMessage `json:"minAvailable"`
		Selector       struct {
			MatchLabels      map[string]string `json:"matchLabels"`
			MatchExpressions []struct {
				Key      string   `json:"key"`
				Operator string   `json:"operator"`
				Values   []string `json:"values"`
			} `json:"matchExpressions"`
		} `json:"selector"`
	} `json:"spec"`
	Status struct {
		DisruptionsAllowed int `json:"disruptionsAllowed"`
		ExpectedPods       int `json:"expectedPods"`
	} `json:"status"`
}

// Never says why the budget never allows an eviction; empty: it may.
func (b *Budget) Never() string {
	if most := unquoted(b.Spec.MaxUnavailable); most == "0" || most == "0%" {
		return "its maxUnavailable is " + most
	}
	least := unquoted(b.Spec.MinAvailable)
	n, err := strconv.Atoi(least) // a share is no number
	if least == "100%" || err == nil && b.Status.ExpectedPods > 0 && n >= b.Status.ExpectedPods {
		return fmt.Sprintf("its minAvailable is %s of %d pods", least, b.Status.ExpectedPods)
	}
	return ""
}

func unquoted(raw json.RawMessage) string { return strings.Trim(string(raw), `"`) }

// labels is the budget's selector as a list is asked by.
func (b *Budget) labels() string {
	var all []string
	for k, v := range b.Spec.Selector.MatchLabels {
		all = append(all, k+"="+v)
	}
	for _, e := range b.Spec.Selector.MatchExpressions {
		switch e.Operator {
		case "In", "NotIn":
			all = append(all, e.Key+" "+strings.ToLower(e.Operator)+" ("+strings.Join(e.Values, ",")+")")
		case "Exists":
			all = append(all, e.Key)
		case "DoesNotExist":
			all = append(all, "!"+e.Key)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// list asks for a collection as it is now.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	var all struct {
		Items []T `json:"items"`
	}
	err := c.do(ctx, http.MethodGet, path+"?"+query.Encode(), "", nil, &all)
	return all.Items, err
}

// podNames are the pods that a selector finds now.
func (c *Client) podNames(ctx context.Context, namespace, selector string) (names []string, err error) {
	pods, err := list[Pod](ctx, c, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/pods", url.Values{"labelSelector": {selector}})
	for _, p := range pods {
		names = append(names, p.Metadata.Name)
	}
	return names, err
}

// Selected are the names of the pool's pods as they are now.
func (p *Pool) Selected(ctx context.Context) ([]string, error) {
	selector := p.Selector
	if p.Inference != "" {
		pools, err := list[inferencePool](ctx, p.Client, "/apis/inference.networking.k8s.io/v1/namespaces/"+url.PathEscape(p.Namespace)+"/inferencepools",
			url.Values{"fieldSelector": {"metadata.name=" + p.Inference}})
		if err != nil {
			return nil, err
		}
		if len(pools) == 0 {
			return nil, fmt.Errorf("there is no InferencePool %s/%s", p.Namespace, p.Inference)
		}
		selector, _ = pools[0].selects()
	}
	return p.Client.podNames(ctx, p.Namespace, selector)
}

// Budgets are the budgets that hold for pods, by the pods' names.
func (c *Client) Budgets(ctx context.Context, namespace string, pods []string) (map[string][]Budget, error) {
	all, err := list[Budget](ctx, c, "/apis/policy/v1/namespaces/"+url.PathEscape(namespace)+"/poddisruptionbudgets", nil)
	if err != nil {
		return nil, err
	}
	found := map[string][]Budget{}
	for _, b := range all {
		held, err := c.podNames(ctx, namespace, b.labels())
		if err != nil {
			return nil, err
		}
		for _, name := range held {
			if slices.Contains(pods, name) {
				found[name] = append(found[name], b)
			}
		}
	}
	return found, nil
}
