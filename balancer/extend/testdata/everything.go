// Everything is a filter that does all that a filter can: it is what the tests of
// the door's side are for. A request whose id begins with "hang" hangs where the id
// says; the ends of requests are written to ends.txt in its folder.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
)

type everything struct{}

func (everything) ReadsBody() bool { return true }

func hang(id, where string) {
	if id == "hang-"+where {
		time.Sleep(time.Hour)
	}
}

func (everything) Begin(_ context.Context, req *pb.BeginRequest) (*pb.BeginResponse, error) {
	hang(req.GetId(), "begin")
	if bytes.Contains(req.GetBody(), []byte("forbidden")) {
		return &pb.BeginResponse{Deny: &pb.Deny{Status: 451, Message: "not this", Type: "policy"}}, nil
	}
	return &pb.BeginResponse{
		Body:     bytes.ReplaceAll(req.GetBody(), []byte("cat"), []byte("dog")),
		Priority: "low", Route: "other", Key: "team",
		SetHeaders: []*pb.Header{{Name: "X-Tenant", Value: "t1"}, {Name: "Content-Length", Value: "0"}, {Name: "X-Bad", Value: "a\r\nb: c"}},
	}, nil
}

func (everything) Respond(_ context.Context, req *pb.RespondRequest) (*pb.RespondResponse, error) {
	hang(req.GetId(), "respond")
	return &pb.RespondResponse{SetHeaders: []*pb.Header{{Name: "X-Checked", Value: fmt.Sprint(req.GetStatus())}}}, nil
}

func (everything) Chunk(_ context.Context, req *pb.ChunkRequest) (*pb.ChunkResponse, error) {
	hang(req.GetId(), "chunk")
	return &pb.ChunkResponse{Data: []byte(strings.ToUpper(string(req.GetData())))}, nil
}

func (everything) End(_ context.Context, req *pb.EndRequest) error {
	f, err := os.OpenFile("ends.txt", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s %d %s %d\n", req.GetId(), req.GetStatus(), req.GetOutcome(), req.GetGeneratedTokens())
	return err
}

func main() { sdk.ServeFilter(everything{}) }
