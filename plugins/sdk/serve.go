package sdk

import (
	"context"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"roundhouse/plugins/pb"
)

// Policy orders the workers that could take a request: names, best first.
type Policy interface {
	Order(ctx context.Context, req *pb.OrderRequest) (workers []string, err error)
}

// Filter sees a request begin. To see more of it, implement Responder, Chunker
// or Ender as well: what a filter does not implement is never sent to it.
type Filter interface {
	Begin(ctx context.Context, req *pb.BeginRequest) (*pb.BeginResponse, error)
}

// BodyReader is a Filter that wants the request's body.
type BodyReader interface{ ReadsBody() bool }

// Responder is a Filter that sees the status and headers of the answer.
type Responder interface {
	Respond(ctx context.Context, req *pb.RespondRequest) (*pb.RespondResponse, error)
}

// Chunker is a Filter that rewrites the answer, whole events at a time.
type Chunker interface {
	Chunk(ctx context.Context, req *pb.ChunkRequest) (*pb.ChunkResponse, error)
}

// Ender is a Filter that is told how each request ended.
type Ender interface {
	End(ctx context.Context, req *pb.EndRequest) error
}

// Notifier carries one event out. An error counts as not delivered.
type Notifier interface {
	Notify(ctx context.Context, req *pb.NotifyRequest) error
}

// Version is what a plugin calls itself; set it before serving.
var Version = "unknown"

// ServePolicy runs a policy until Roundhouse ends it. It does not return.
func ServePolicy(p Policy) {
	serve(&pb.DescribeResponse{Kind: KindPolicy}, func(s *grpc.Server) { pb.RegisterPolicyServer(s, policyServer{impl: p}) })
}

// ServeFilter runs a filter until Roundhouse ends it. It does not return.
func ServeFilter(f Filter) {
	serve(&pb.DescribeResponse{Kind: KindFilter, Filter: wants(f)}, func(s *grpc.Server) { pb.RegisterFilterServer(s, filterServer{impl: f}) })
}

// wants finds what a filter implements.
func wants(f Filter) *pb.FilterWants {
	w := &pb.FilterWants{}
	if b, ok := f.(BodyReader); ok {
		w.Body = b.ReadsBody()
	}
	_, w.Respond = f.(Responder)
	_, w.Chunks = f.(Chunker)
	_, w.End = f.(Ender)
	return w
}

// ServeDriver runs a driver until Roundhouse ends it. It does not return. Embed
// pb.UnimplementedDriverServer by value to be ready for later additions.
func ServeDriver(d pb.DriverServer) {
	serve(&pb.DescribeResponse{Kind: KindDriver}, func(s *grpc.Server) { pb.RegisterDriverServer(s, d) })
}

// ServeNotifier runs a notifier until Roundhouse ends it. It does not return.
func ServeNotifier(n Notifier) {
	serve(&pb.DescribeResponse{Kind: KindNotifier}, func(s *grpc.Server) { pb.RegisterNotifierServer(s, notifierServer{impl: n}) })
}

func serve(self *pb.DescribeResponse, register func(*grpc.Server)) {
	self.Version = Version
	both := func(s *grpc.Server) {
		pb.RegisterPluginServer(s, describer{self: self})
		register(s)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  Handshake,
		VersionedPlugins: map[int]plugin.PluginSet{ProtocolVersion: {self.Kind: &service{register: both}}},
		GRPCServer:       plugin.DefaultGRPCServer,
	})
}

// describer answers what the plugin is.
type describer struct {
	pb.UnimplementedPluginServer
	self *pb.DescribeResponse
}

func (d describer) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return d.self, nil
}

// service makes a go-plugin of one gRPC service. The host's side of it only
// hands out the connection: the generated clients do the rest.
type service struct {
	plugin.NetRPCUnsupportedPlugin
	register func(*grpc.Server)
}

func (s *service) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	s.register(server)
	return nil
}

func (s *service) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// ClientSet is the host's side: what it may dispense of a plugin of this kind. A
// dispensed client is the *grpc.ClientConn.
func ClientSet(kind string) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{ProtocolVersion: {kind: &service{}}}
}

type policyServer struct {
	pb.UnimplementedPolicyServer
	impl Policy
}

func (s policyServer) Order(ctx context.Context, req *pb.OrderRequest) (*pb.OrderResponse, error) {
	workers, err := s.impl.Order(ctx, req)
	return &pb.OrderResponse{Workers: workers}, err
}

type filterServer struct {
	pb.UnimplementedFilterServer
	impl Filter
}

func (s filterServer) Begin(ctx context.Context, req *pb.BeginRequest) (*pb.BeginResponse, error) {
	return s.impl.Begin(ctx, req)
}

func (s filterServer) Respond(ctx context.Context, req *pb.RespondRequest) (*pb.RespondResponse, error) {
	if r, ok := s.impl.(Responder); ok {
		return r.Respond(ctx, req)
	}
	return &pb.RespondResponse{}, nil
}

func (s filterServer) Chunk(ctx context.Context, req *pb.ChunkRequest) (*pb.ChunkResponse, error) {
	if c, ok := s.impl.(Chunker); ok {
		return c.Chunk(ctx, req)
	}
	return &pb.ChunkResponse{Data: req.Data}, nil
}

func (s filterServer) End(ctx context.Context, req *pb.EndRequest) (*pb.EndResponse, error) {
	if e, ok := s.impl.(Ender); ok {
		return &pb.EndResponse{}, e.End(ctx, req)
	}
	return &pb.EndResponse{}, nil
}

type notifierServer struct {
	pb.UnimplementedNotifierServer
	impl Notifier
}

func (s notifierServer) Notify(ctx context.Context, req *pb.NotifyRequest) (*pb.NotifyResponse, error) {
	return &pb.NotifyResponse{}, s.impl.Notify(ctx, req)
}
