package extproc

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// Options says what a server needs.
type Options struct {
	Host Host
	// Certificate is shown to gateways that speak TLS; nil: one is made.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Unwatched has every stream end once its request has gone on: no answer is seen.
	Unwatched bool
	MostBody  int64 // bytes of the longest body
	Log       *slog.Logger
}

// Server is a picker for one pool, at as many addresses as are served.
type Server struct {
	o      Options
	log    *slog.Logger
	grpc   *grpc.Server
	health *health.Server
}

// What a stream may send that the picker has not taken yet, and all of a connection:
// this is held beside the bodies that are booked.
const (
	streamWindow     = 256 << 10
	connectionWindow = 16 << 20
)

// The names that health is asked by: that of the process, which holds until it ends, and
// those of readiness.
const (
	processName   = "liveness"
	readinessName = "readiness"
	serviceName   = "envoy.service.ext_proc.v3.ExternalProcessor"
	extensionName = "inference-extension"
)

// New makes a server that is not ready yet.
func New(o Options) (*Server, error) {
	creds, err := newCredentials(o.Certificate)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, log: o.Log, health: health.NewServer()}
	s.grpc = grpc.NewServer(
		grpc.Creds(creds),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(int(min(o.MostBody, 1<<30))+1<<20),
		grpc.InitialWindowSize(streamWindow),
		grpc.InitialConnWindowSize(connectionWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	s.grpc.RegisterService(&grpc.ServiceDesc{
		ServiceName: serviceName,
		Streams: []grpc.StreamDesc{{StreamName: "Process", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, rpc grpc.ServerStream) error { return s.process(rpc) }}},
	}, nil)
	s.health.SetServingStatus(processName, healthpb.HealthCheckResponse_SERVING)
	s.Ready(false)
	return s, nil
}

// Serve takes gateways in until the server stops.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Ready reports whether gateways are to send requests here.
func (s *Server) Ready(ready bool) {
	state := healthpb.HealthCheckResponse_NOT_SERVING
	if ready {
		state = healthpb.HealthCheckResponse_SERVING
	}
	for _, name := range [...]string{"", readinessName, serviceName, extensionName} {
		s.health.SetServingStatus(name, state)
	}
}

// Drain takes no more requests, and waits until the streams that are there have ended.
func (s *Server) Drain(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Stop ends the server, and all that is left with it.
func (s *Server) Stop() { s.grpc.Stop() }
