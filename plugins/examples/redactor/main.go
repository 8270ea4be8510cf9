// Redactor is a filter that takes e-mail addresses out of prompts before any
// worker sees them.
package main

import (
	"context"
	"regexp"

	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
)

// An address inside a JSON string needs no unescaping: none of its characters
// is ever escaped.
var address = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}`)

type redactor struct{}

func (redactor) ReadsBody() bool { return true }

func (redactor) Begin(_ context.Context, req *pb.BeginRequest) (*pb.BeginResponse, error) {
	if !address.Match(req.GetBody()) {
		return &pb.BeginResponse{}, nil
	}
	return &pb.BeginResponse{Body: address.ReplaceAll(req.GetBody(), []byte("[address]"))}, nil
}

func main() { sdk.ServeFilter(redactor{}) }
