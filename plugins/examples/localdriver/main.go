// Localdriver is a driver that runs workers as plain processes of its own, in the
// shape that a driver for a scheduler (Nomad, systemd-run) would have: Start is
// idempotent, Inspect is the truth, Events are hints.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
)

// process is one worker that this driver started.
type process struct {
	spec    *pb.WorkerSpec
	cmd     *exec.Cmd
	log     *os.File
	started time.Time
	ended   chan struct{} // closed when it has ended and code is set
	code    int32
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

type driver struct {
	pb.UnimplementedDriverServer
	mu       sync.Mutex
	workers  map[string]*process // by instance/id
	watchers map[chan *pb.EventsResponse]string
}

func (d *driver) Start(_ context.Context, req *pb.StartRequest) (*pb.StartResponse, error) {
	spec := req.GetSpec()
	if len(spec.GetCommand()) == 0 {
		return nil, errors.New("the worker has no command")
	}
	key := spec.GetInstance() + "/" + spec.GetId()
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.workers[key]; p != nil && p.running() {
		if p.spec.GetHash() == spec.GetHash() {
			return p.response(), nil
		}
		return nil, fmt.Errorf("%s runs already with another configuration; stop it first", spec.GetId())
	}
	log, err := os.CreateTemp("", "localdriver-*.log")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(spec.GetCommand()[0], spec.GetCommand()[1:]...)
	for k, v := range spec.GetEnvironment() {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		log.Close()
		os.Remove(log.Name())
		return nil, err
	}
	p := &process{spec: spec, cmd: cmd, log: log, started: time.Now(), ended: make(chan struct{})}
	d.workers[key] = p
	go d.wait(p)
	return p.response(), nil
}

func (p *process) response() *pb.StartResponse {
	return &pb.StartResponse{Handle: fmt.Sprint(p.cmd.Process.Pid), Url: fmt.Sprintf("http://127.0.0.1:%d", p.spec.GetPort())}
}

// wait notes the end of a process and tells those who watch.
func (d *driver) wait(p *process) {
	p.cmd.Wait()
	p.code = int32(p.cmd.ProcessState.ExitCode())
	close(p.ended)
	d.mu.Lock()
	defer d.mu.Unlock()
	for w, instance := range d.watchers {
		if instance == p.spec.GetInstance() {
			select {
			case w <- &pb.EventsResponse{Id: p.spec.GetId(), What: "ended"}:
			default: // a hint may be lost
			}
		}
	}
}

func (d *driver) Stop(ctx context.Context, req *pb.StopRequest) (*pb.StopResponse, error) {
	d.mu.Lock()
	p := d.workers[req.GetInstance()+"/"+req.GetId()]
	d.mu.Unlock()
	if p == nil || !p.running() {
		return &pb.StopResponse{}, nil
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	grace := time.NewTimer(time.Duration(req.GetGraceSeconds() * float64(time.Second)))
	defer grace.Stop()
	select {
	case <-p.ended:
		return &pb.StopResponse{}, nil
	case <-grace.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.cmd.Process.Kill()
	<-p.ended
	return &pb.StopResponse{}, nil
}

func (d *driver) Inspect(_ context.Context, req *pb.InspectRequest) (*pb.InspectResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var res pb.InspectResponse
	for _, p := range d.workers {
		if p.spec.GetInstance() != req.GetInstance() {
			continue
		}
		f := &pb.Found{
			Id: p.spec.GetId(), Handle: p.response().GetHandle(), Url: p.response().GetUrl(),
			Generation: p.spec.GetGeneration(), Hash: p.spec.GetHash(),
			Running: p.running(), StartedUnixMs: p.started.UnixMilli(),
		}
		if !f.Running {
			f.ExitCode, f.Reason = p.code, p.cmd.ProcessState.String()
		}
		res.Workers = append(res.Workers, f)
	}
	return &res, nil
}

func (d *driver) Logs(req *pb.LogsRequest, out grpc.ServerStreamingServer[pb.LogsResponse]) error {
	d.mu.Lock()
	p := d.workers[req.GetInstance()+"/"+req.GetId()]
	d.mu.Unlock()
	if p == nil {
		return fmt.Errorf("there is no worker %s", req.GetId())
	}
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err
	}
	return out.Send(&pb.LogsResponse{Data: text})
}

func (d *driver) Events(req *pb.EventsRequest, out grpc.ServerStreamingServer[pb.EventsResponse]) error {
	mine := make(chan *pb.EventsResponse, 16)
	d.mu.Lock()
	d.watchers[mine] = req.GetInstance()
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.watchers, mine)
		d.mu.Unlock()
	}()
	for {
		select {
		case e := <-mine:
			if err := out.Send(e); err != nil {
				return err
			}
		case <-out.Context().Done():
			return nil
		}
	}
}

func main() {
	sdk.ServeDriver(&driver{workers: map[string]*process{}, watchers: map[chan *pb.EventsResponse]string{}})
}
