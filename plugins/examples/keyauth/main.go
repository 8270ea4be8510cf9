// Keyauth is a filter that checks API keys against a file: one "name sha256" a
// line, the hash in hex. The file is read again when it changes, so keys come and
// go without a reload.
//
//	plugin "keyauth" {
//	  kind       = "filter"
//	  path       = "/usr/local/libexec/roundhouse/keyauth"
//	  sha256     = "…"
//	  on_failure = "closed"
//	}
//
// The file is keys.txt in the folder of the plugin.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
)

// keyFile is a file of keys, read again when its time or size changes.
type keyFile struct {
	path string

	mu    sync.Mutex
	read  time.Time
	size  int64
	names map[[32]byte]string // by hash: a look-up takes the same time for every key
}

func (k *keyFile) Begin(_ context.Context, req *pb.BeginRequest) (*pb.BeginResponse, error) {
	token := ""
	for _, h := range req.GetHeaders() {
		if h.GetName() == "authorization" {
			token, _ = strings.CutPrefix(h.GetValue(), "Bearer ")
		}
	}
	names, err := k.load()
	if err != nil {
		return nil, err // the door does as on_failure says
	}
	name, ok := names[sha256.Sum256([]byte(token))]
	if !ok || token == "" {
		return &pb.BeginResponse{Deny: &pb.Deny{Status: 401, Type: "invalid_api_key", Message: "The API key is missing or not known."}}, nil
	}
	return &pb.BeginResponse{Key: name}, nil
}

func (k *keyFile) load() (map[[32]byte]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.path)
	if err != nil {
		return nil, err
	}
	if k.names != nil && info.ModTime().Equal(k.read) && info.Size() == k.size {
		return k.names, nil
	}
	names, err := parse(k.path)
	if err != nil {
		return nil, err
	}
	k.names, k.read, k.size = names, info.ModTime(), info.Size()
	return names, nil
}

func parse(path string) (map[[32]byte]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names := map[[32]byte]string{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		var sum []byte
		if len(fields) == 2 {
			sum, err = hex.DecodeString(fields[1])
		}
		if len(fields) != 2 || err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("%s:%d: want a name and a sha256 in hex", path, n)
		}
		names[[32]byte(sum)] = fields[0]
	}
	return names, lines.Err()
}

func main() { sdk.ServeFilter(&keyFile{path: "keys.txt"}) }
