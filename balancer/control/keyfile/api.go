package keyfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs"
)

// API answers /api/keys.
type API struct {
	Store *Store
	// Configured are the configuration's keys, and its file.
	Configured func(context.Context) ([]configs.Key, string, error)
	// Changed has the doors take up a change, and tells how many have.
	Changed func(ctx context.Context, by, what string) control.Taken
	// Used is what the doors know; nil: none answers.
	Used func(context.Context) *control.KeysUse
}

// Mount adds the routes.
func (a *API) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/keys", a.list)
	mux.HandleFunc("POST /api/keys", a.add)
	mux.HandleFunc("DELETE /api/keys/{name}", a.remove)
}

func answer(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the asker may be gone
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusConflict
	switch {
	case errors.Is(err, ErrUnknown):
		status = http.StatusNotFound
	case errors.Is(err, ErrInvalid):
		status = http.StatusBadRequest
	}
	control.Fail(w, status, err.Error())
}

func (a *API) list(w http.ResponseWriter, r *http.Request) {
	configured, _, err := a.Configured(r.Context())
	if err != nil {
		control.Fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answer(w, http.StatusOK, a.shown(configured, a.Used(r.Context()), time.Now()))
}

func (a *API) shown(configured []configs.Key, use *control.KeysUse, now time.Time) control.KeysShown {
	out := control.KeysShown{Schema: 1, At: now.UTC(), Asked: a.Store.Asked() || len(configured) > 0, Faults: []string{}, Keys: []control.KeyShown{}}
	if err := a.Store.Fault(); err != nil {
		out.Faults = append(out.Faults, err.Error())
	}
	used := map[string]control.KeyUsed{}
	if use != nil {
		out.Timezone = use.Timezone
		for _, k := range use.Keys {
			used[k.Name] = k
		}
	}
	names := map[string]bool{}
	for i := range configured {
		k := show(&configured[i], use, used, now)
		k.Source, names[k.Name] = "configuration", true
		out.Keys = append(out.Keys, k)
	}
	for _, m := range a.Store.List() {
		k := show(&m.Key, use, used, now)
		k.Source, k.Shadowed, k.Created, k.By = "made", names[m.Name], &m.Created, control.Known(m.By)
		out.Keys = append(out.Keys, k)
	}
	return out
}

// show is a key as it is shown.
func show(k *configs.Key, use *control.KeysUse, all map[string]control.KeyUsed, now time.Time) control.KeyShown {
	s := control.KeyShown{
		Name: k.Name, Models: k.Models, Pools: append([]string{}, k.Pools...), RequestsPerMinute: k.RequestsPerMinute, TokensPerMinute: k.TokensPerMinute,
		MaxConcurrent: k.MaxConcurrent, Priority: k.Priority, Weight: k.Weight, Budgets: []control.BudgetShown{},
	}
	if at, err := k.Expiry(); err == nil && !at.IsZero() {
		s.Expires, s.Expired = &at, !now.Before(at)
	}
	of := map[string]control.Used{}
	resets := map[string]*time.Time{}
	if use != nil {
		u := all[k.Name] // a door that does not know it yet has seen none of it
		s.UsedDay, s.UsedMonth, s.Live = &u.Day, &u.Month, &u.Live
		of["day"], of["month"], resets["day"], resets["month"] = u.Day, u.Month, &use.Day, &use.Month
	}
	for period, budget := range map[string]*configs.Budget{"day": &k.Day, "month": &k.Month} {
		for _, b := range control.BudgetKinds(budget) {
			if b.Period, b.Resets = period, resets[period]; use != nil {
				used := of[period].Of(b.Kind)
				left := max(0, b.Limit-used)
				b.Used, b.Left = &used, &left
			}
			s.Budgets = append(s.Budgets, b)
		}
	}
	slices.SortStableFunc(s.Budgets, func(a, b control.BudgetShown) int { return strings.Compare(a.Period, b.Period) })
	return s
}

// add makes a key, or takes one whose hash the asker gives.
func (a *API) add(w http.ResponseWriter, r *http.Request) {
	made := Made{Key: configs.NewKey(""), Created: time.Now().UTC().Truncate(time.Second), By: control.Asker(r)}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&made.Key); err != nil {
		control.Fail(w, http.StatusBadRequest, "the body is no key: "+err.Error())
		return
	}
	out := control.KeyAdded{Schema: 1, Name: made.Name}
	if len(made.SHA256) == 0 {
		out.Key, out.SHA256 = NewKey()
		made.SHA256 = []string{out.SHA256}
	} else {
		out.SHA256 = made.SHA256[0]
	}
	configured, _, err := a.Configured(r.Context())
	if err != nil {
		control.Fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	first, err := a.Store.Add(made, configured)
	if err != nil {
		fail(w, err)
		return
	}
	out.First = first && len(configured) == 0
	out.Taken = a.Changed(r.Context(), made.By, fmt.Sprintf("%q is added", made.Name))
	answer(w, http.StatusCreated, out)
}

// remove revokes a key that was made at run time.
func (a *API) remove(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	configured, file, err := a.Configured(r.Context())
	if err != nil {
		control.Fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	use := a.Used(r.Context())
	if err := a.Store.Remove(name); err != nil {
		if errors.Is(err, ErrUnknown) && slices.ContainsFunc(configured, func(k configs.Key) bool { return k.Name == name }) {
			control.Fail(w, http.StatusConflict, fmt.Sprintf("key %q is the configuration's: take its block, door { key %q { … } }, out of %s and reload", name, name, file))
			return
		}
		fail(w, err)
		return
	}
	out := control.KeyRemoved{Schema: 1, Name: name, Left: len(configured) + len(a.Store.Keys(configured))}
	if use != nil {
		out.Live = new(int)
		for _, k := range use.Keys {
			if k.Name == name {
				*out.Live = k.Live
			}
		}
	}
	out.Taken = a.Changed(r.Context(), control.Asker(r), fmt.Sprintf("%q is revoked", name))
	answer(w, http.StatusOK, out)
}
