package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"roundhouse/balancer/control"
)

// mostFolders bounds the folders that are heard of.
const mostFolders = 1024

// foreign is what doors of other folders have told, by folder.
type foreign map[string]control.FolderUse

// hear takes one telling and reports whether more is known by it. Doors of one folder
// tell the same up to a second: the larger of each figure holds.
func (f foreign) hear(t control.FolderUse) bool {
	if len(t.Folder) > 64 {
		return false
	}
	if _, err := time.Parse(dayForm, t.Day); err != nil {
		return false
	}
	old, known := f[t.Folder]
	switch {
	case t.Day < old.Day, !known && len(f) >= mostFolders:
		return false
	case t.Day == old.Day:
		t = larger(old, t)
	}
	f[t.Folder] = t
	return old.Day != t.Day || !slices.Equal(old.Keys, t.Keys)
}

// larger joins two tellings of one folder's day.
func larger(a, b control.FolderUse) control.FolderUse {
	keys := map[string]control.BudgetUse{}
	for _, k := range slices.Concat(a.Keys, b.Keys) {
		had := keys[k.Name]
		keys[k.Name] = control.BudgetUse{Name: k.Name, Day: had.Day.Most(k.Day), Month: had.Month.Most(k.Month)}
	}
	out := control.FolderUse{Folder: a.Folder, Day: a.Day}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		out.Keys = append(out.Keys, keys[name])
	}
	return out
}

// foreignPath is where the tellings are kept: they hold also where this door is new and
// the other host is down.
func (f *folder) foreignPath() string { return filepath.Join(f.dir, "elsewhere.json") }

// readForeign reads what is kept.
func (f *folder) readForeign() (foreign, error) {
	text, err := os.ReadFile(f.foreignPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []control.FolderUse
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("usage: %s: what doors of other folders have told is lost until they tell it again: %w", f.foreignPath(), err)
	}
	all := foreign{}
	for _, t := range list {
		all.hear(t)
	}
	return all, nil
}

// keepForeign writes what is known of a month, with what other doors of the folder have
// written.
func (f *folder) keepForeign(all foreign, month string) error {
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	kept, _ := f.readForeign() // if it is damaged it is written anew
	for _, t := range kept {
		all.hear(t)
	}
	list := []control.FolderUse{}
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		if t := all[folder]; t.Day[:7] >= month {
			list = append(list, t)
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	return replace(f.foreignPath(), text)
}
