// Package compose holds what runs Roundhouse in containers and what watches
// it: the Dockerfile, the compose files, the configuration of Prometheus with
// its alert rules, and Grafana's dashboards.
//
// The dashboards are made from the tables in this package ([Dashboards]), so
// that a panel is one line here and not fifty of JSON. A test holds the files
// to the tables, and every query of a dashboard or a rule to the metrics that
// are exported ([Metrics]). `go test ./compose -update` writes them anew.
package compose
