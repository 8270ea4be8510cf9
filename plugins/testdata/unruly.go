// Unruly is a policy that misbehaves as the file "mode" in its folder says. It is
// what the tests of the host are for; see plugin_test.go.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	plugin "github.com/hashicorp/go-plugin"

	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
)

type unruly struct{ mode string }

var kept [][]byte

func (u unruly) Order(ctx context.Context, req *pb.OrderRequest) ([]string, error) {
	switch {
	case u.mode == "hang" && req.GetRequest().GetId() == "hang":
		select {} // the deadline of the call is not obeyed either
	case u.mode == "panic" && req.GetRequest().GetId() == "panic":
		panic("as asked")
	case u.mode == "eat":
		for range 64 {
			block := make([]byte, 1<<20)
			for i := range block {
				block[i] = 1
			}
			kept = append(kept, block)
		}
	case u.mode == "flood":
		for i := range 2000 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
	case u.mode == "who":
		return []string{fmt.Sprint(os.Getuid())}, nil
	case u.mode == "environment":
		return os.Environ(), nil
	}
	return []string{"a"}, nil
}

func main() {
	text, _ := os.ReadFile("mode")
	mode := strings.TrimSpace(string(text))
	switch mode {
	case "rubbish":
		fmt.Println("hello, I print before the handshake")
	case "version":
		plugin.Serve(&plugin.ServeConfig{HandshakeConfig: sdk.Handshake, VersionedPlugins: map[int]plugin.PluginSet{99: {}}, GRPCServer: plugin.DefaultGRPCServer})
	case "silent":
		time.Sleep(time.Hour)
	}
	sdk.ServePolicy(unruly{mode})
}
