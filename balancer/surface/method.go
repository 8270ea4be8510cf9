package surface

import (
	"slices"
	"strings"
)

// MethodsOf are the methods that a path takes, beside OPTIONS, which every path does.
func MethodsOf(k Kind, path string) []string {
	switch k {
	case Models, Model, Health, Metrics:
		return []string{"GET", "HEAD"}
	case Stored:
		_, act, _ := strings.Cut(strings.TrimPrefix(path, ResponsePrefix), "/")
		switch act {
		case "":
			return []string{"GET", "DELETE"}
		case "cancel":
			return []string{"POST"}
		}
		return []string{"GET"}
	}
	return []string{"POST"}
}

// AllMethods are those that some path takes.
const AllMethods = "GET, HEAD, POST, DELETE, OPTIONS"

// NotTaken refuses a method that a path does not take; nil where it does.
func NotTaken(method string, takes []string) *Failure {
	if slices.Contains(takes, method) {
		return nil
	}
	return &Failure{Status: 405, Type: "invalid_request_error", Code: "method_not_allowed", Message: "this path takes " + strings.Join(takes, " or "),
		Allow: strings.Join(takes, ", ") + ", OPTIONS"}
}
