package kube

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Lease is a Lease of a cluster: who may act, and a note that only the holder's last word
// changes.
type Lease struct {
	Client    *Client
	Namespace string
	Name      string
}

// Record is what a Lease says. A Record that was read is written back as a whole, unless
// somebody else wrote meanwhile.
type Record struct {
	Holder  string // empty: nobody
	Renewed string // as the holder wrote it; only its changes matter, no clock is compared
	Note    string

	object leaseObject
}

// leaseObject is a Lease as the API server has it.
type leaseObject struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   leaseMeta `json:"metadata"`
	Spec       leaseSpec `json:"spec"`
}

type leaseMeta struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace,omitempty"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	OwnerReferences []any             `json:"ownerReferences,omitempty"`
	Finalizers      []string          `json:"finalizers,omitempty"`
}

type leaseSpec struct {
	HolderIdentity       string `json:"holderIdentity"`
	LeaseDurationSeconds int    `json:"leaseDurationSeconds"`
	AcquireTime          string `json:"acquireTime,omitempty"`
	RenewTime            string `json:"renewTime,omitempty"`
	LeaseTransitions     int    `json:"leaseTransitions"`
}

const (
	leaseNote = "roundhouse.dev/rotation"
	microTime = "2006-01-02T15:04:05.000000Z07:00"
)

// ErrWritten says that somebody else has written a Lease since it was read.
var ErrWritten = errors.New("somebody else has written the Lease")

func (l *Lease) collection() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + url.PathEscape(l.Namespace) + "/leases"
}

// Read reads the Lease. One that is not there is a Record of nobody.
func (l *Lease) Read(ctx context.Context) (Record, error) {
	var o leaseObject
	err := l.Client.do(ctx, http.MethodGet, l.collection()+"/"+url.PathEscape(l.Name), "", nil, &o)
	if refused := (*Refused)(nil); errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return Record{}, nil
	}
	return o.record(), err
}

func (o *leaseObject) record() Record {
	return Record{Holder: o.Spec.HolderIdentity, Renewed: o.Spec.RenewTime, Note: o.Metadata.Annotations[leaseNote], object: *o}
}

// Write writes a Record that was read, with its holder and its note, and renews it where
// there is a holder. It fails with ErrWritten where the Lease is another by now.
func (l *Lease) Write(ctx context.Context, r Record, lasts time.Duration) (Record, error) {
	o, now := r.object, time.Now().UTC().Format(microTime)
	if o.Spec.HolderIdentity != r.Holder {
		o.Spec.HolderIdentity, o.Spec.AcquireTime = r.Holder, now
		o.Spec.LeaseTransitions++
	}
	if o.Spec.RenewTime = r.Renewed; r.Renewed == "" {
		o.Spec.RenewTime = now
	}
	o.Spec.LeaseDurationSeconds = int(lasts / time.Second)
	annotations := map[string]string{leaseNote: r.Note}
	for k, v := range o.Metadata.Annotations {
		if k != leaseNote {
			annotations[k] = v
		}
	}
	o.Metadata.Annotations = annotations
	method, path := http.MethodPut, l.collection()+"/"+url.PathEscape(l.Name)
	if o.Metadata.ResourceVersion == "" {
		method, path = http.MethodPost, l.collection()
		o.APIVersion, o.Kind, o.Metadata.Name, o.Metadata.Namespace = "coordination.k8s.io/v1", "Lease", l.Name, l.Namespace
	}
	var written leaseObject
	err := l.Client.do(ctx, method, path, "application/json", o, &written)
	if refused := (*Refused)(nil); errors.As(err, &refused) && refused.Status == http.StatusConflict {
		return Record{}, ErrWritten
	}
	return written.record(), err
}
