package compose

import (
	"encoding/json"

	"roundhouse/balancer/control/phase"
)

// Dashboard is one page of Grafana.
type Dashboard struct {
	UID, Title string
	Variables  []Variable
	Rows       []Row
}

// Variable is a choice at the top of a page.
type Variable struct{ Name, Metric, Label string }

// Row is a titled stretch of panels, which share its width.
type Row struct {
	Title  string
	Panels []Panel
}

// Panel is one chart.
type Panel struct {
	Title, About string
	Kind         string // timeseries, stat, heatmap, state-timeline, table
	Unit         string // Grafana's name of it: s, percentunit, short, reqps …
	Max          *float64
	Stack        bool
	Queries      []Query
}

// Query is a question to Prometheus, and how its series are named.
type Query struct{ Expr, Legend string }

const (
	width       = 24 // of a page, in Grafana's units
	panelHeight = 8
)

type object = map[string]any

// sourceUID is the data source that provisioning sets up.
const sourceUID = "roundhouse-prometheus"

var source = object{"type": "prometheus", "uid": sourceUID}

// JSON is the page as Grafana reads it.
func (d Dashboard) JSON() ([]byte, error) {
	panels := []object{}
	id, y := 0, 0
	place := func(w, x, h int) object { return object{"h": h, "w": w, "x": x, "y": y} }
	for _, row := range d.Rows {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": row.Title, "collapsed": false, "panels": []object{}, "gridPos": place(width, 0, 1)})
		y++
		w := width / len(row.Panels)
		for i, p := range row.Panels {
			id++
			o := p.object()
			o["id"], o["gridPos"] = id, place(w, i*w, panelHeight)
			panels = append(panels, o)
		}
		y += panelHeight
	}
	page := object{
		"uid": d.UID, "title": d.Title, "tags": []string{"roundhouse"}, "schemaVersion": 39, "version": 1, "editable": true,
		"timezone": "browser", "refresh": "10s", "time": object{"from": "now-1h", "to": "now"},
		"annotations": object{"list": []object{turns()}},
		"templating":  object{"list": d.variables()},
		"links": []object{{"type": "dashboards", "tags": []string{"roundhouse"}, "title": "Roundhouse", "icon": "dashboard", "tooltip": "The other pages, at the same time and with the same choices",
			"asDropdown": false, "includeVars": true, "keepTime": true, "targetBlank": false}},
		"panels": panels,
	}
	text, err := json.MarshalIndent(page, "", "  ")
	return append(text, '\n'), err
}

// turns marks the moments at which a worker went out of service to be turned.
func turns() object {
	return object{"name": "Turns", "datasource": source, "enable": true, "iconColor": "blue",
		"expr": `changes(` + workerState(phase.Draining) + `[1m]) > 0`, "titleFormat": "turn", "textFormat": "{{pool}}/{{worker}}", "step": "15s"}
}

func (d Dashboard) variables() []object {
	out := []object{}
	for _, v := range d.Variables {
		query := "label_values(" + v.Metric + ", " + v.Label + ")"
		out = append(out, object{"name": v.Name, "label": v.Name, "type": "query", "datasource": source, "query": object{"query": query, "refId": v.Name},
			"definition": query, "refresh": 2, "includeAll": true, "multi": true, "allValue": ".*", "sort": 1, "current": object{"text": "All", "value": "$__all"}})
	}
	return out
}

func (p Panel) object() object {
	targets := []object{}
	for i, q := range p.Queries {
		t := object{"refId": string(rune('A' + i)), "expr": q.Expr, "legendFormat": q.Legend, "datasource": source}
		if p.Kind == "heatmap" {
			t["format"] = "heatmap"
		}
		if p.Kind == "table" {
			t["format"], t["instant"] = "table", true
		}
		targets = append(targets, t)
	}
	defaults := object{"unit": p.Unit, "min": 0}
	if p.Max != nil {
		defaults["max"] = *p.Max
	}
	options := object{}
	switch p.Kind {
	case "timeseries":
		custom := object{"fillOpacity": 10, "showPoints": "never", "lineWidth": 1, "spanNulls": true}
		if p.Stack {
			custom["stacking"], custom["fillOpacity"] = object{"mode": "normal"}, 40
		}
		defaults["custom"] = custom
		options = object{"legend": object{"showLegend": true, "displayMode": "table", "placement": "bottom", "calcs": []string{"lastNotNull", "max"}}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	case "stat":
		options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "value", "graphMode": "area"}
	case "heatmap":
		options = object{"calculate": false, "yAxis": object{"unit": p.Unit}, "color": object{"scheme": "Blues", "mode": "scheme", "exponent": 0.5, "fill": "dark-orange", "reverse": false, "steps": 64}}
	}
	return object{"type": p.Kind, "title": p.Title, "description": p.About, "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}}, "options": options}
}
