package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"roundhouse/plugins/pb"
)

// echo answers at once: what gRPC itself costs between two processes.
type echo struct{ pb.UnimplementedPolicyServer }

func (echo) Order(_ context.Context, req *pb.OrderRequest) (*pb.OrderResponse, error) {
	names := make([]string, len(req.GetCandidates()))
	for i, c := range req.GetCandidates() {
		names[i] = c.GetWorker()
	}
	return &pb.OrderResponse{Workers: names}, nil
}

// serveEcho is the child: the echo on a socket, with TLS as a plugin has it.
func serveEcho(socket string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})))
	pb.RegisterPolicyServer(s, echo{})
	s.Serve(l)
}

// startEcho runs this program as the echo's process.
func startEcho(dir string) (client pb.PolicyClient, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	socket := filepath.Join(dir, "echo.sock")
	cmd := exec.Command(self, "echo", socket)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	// The certificate is the child's own invention: what is measured is the cost
	// of TLS, not its worth.
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		cmd.Process.Kill()
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = pb.NewPolicyClient(conn).Order(ctx, request(), grpc.WaitForReady(true))
	return pb.NewPolicyClient(conn), func() { conn.Close(); cmd.Process.Kill(); cmd.Wait() }, err
}
