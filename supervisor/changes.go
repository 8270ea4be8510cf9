package supervisor

import (
	"encoding/json"
	"reflect"
	"strings"

	"roundhouse/balancer/control"
	"roundhouse/configs"
)

// FileChanges is GET /api/config/changes: how the configuration file differs from the
// configuration in force.
type FileChanges struct {
	Schema  int          `json:"schema"`
	File    string       `json:"file"`
	Error   *string      `json:"error"` // why the file cannot be taken as it is; null: it can
	Changes []FileChange `json:"changes"`
}

// FileChange is a setting with other values, as JSON without secrets. A side that has
// no such setting is null.
type FileChange struct {
	Setting string  `json:"setting"`
	Runs    *string `json:"runs"`
	File    *string `json:"file"`
}

// Changes lists the paths in which two configurations differ, in order.
func Changes(old, next *configs.Config) []string {
	out := []string{}
	for _, s := range changed(old, next) {
		out = append(out, s.String())
	}
	return out
}

// CompareFile shows how a file differs from what runs. err is why it cannot be taken;
// where it cannot even be read, file is nil.
func CompareFile(runs *configs.Config, name string, file *configs.Config, err error) FileChanges {
	out := FileChanges{Schema: 1, File: name, Changes: []FileChange{}}
	if err != nil {
		out.Error = control.Known(err.Error())
	}
	if file == nil {
		return out
	}
	shownRuns, shownFile := reflect.ValueOf(runs.Redacted()), reflect.ValueOf(file.Redacted())
	for _, s := range changed(runs, file) {
		out.Changes = append(out.Changes, FileChange{Setting: s.String(), Runs: s.in(shownRuns), File: s.in(shownFile)})
	}
	return out
}

// in is the value of a setting, as JSON; nil where there is none.
func (s setting) in(v reflect.Value) *string {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if len(s) > 0 {
		if v = child(v, s[0]); !v.IsValid() {
			return nil
		}
		return s[1:].in(v)
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if e.Encode(v.Interface()) != nil || text.String() == "null\n" {
		return nil
	}
	return control.Known(strings.TrimSpace(text.String()))
}

// child is what a struct, a map or a list of named things has under a name.
func child(v reflect.Value, name string) reflect.Value {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f, shown := fieldName(v.Type().Field(i)); shown && f == name {
				return v.Field(i)
			}
		}
	case reflect.Map:
		return byKey(v)[name]
	case reflect.Slice:
		return byName(v)[name]
	}
	return reflect.Value{}
}
