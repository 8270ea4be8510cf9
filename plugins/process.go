package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
)

// process is one running process of a plugin. It is never started twice: a
// go-plugin client that has ended stays ended.
type process struct {
	client  *goplugin.Client
	cmd     *exec.Cmd
	conn    *grpc.ClientConn
	version int                  // of the protocol
	about   *pb.DescribeResponse // what it says of itself
	memory  int64                // resident bytes at which it is killed
	socket  string               // the folder of its socket
	end     context.CancelFunc   // kills it at any moment, also while it is being started
}

// startProcess checks, starts and shakes hands with a plugin.
func startProcess(ctx context.Context, spec Spec, o Options, log *slog.Logger) (*process, error) {
	program, err := sealProgram(spec.Path, spec.SHA256)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	p := &process{memory: o.Memory}
	if p.socket, err = os.MkdirTemp(o.TempDir, "roundhouse-plugin-"); err != nil {
		return nil, fmt.Errorf("cannot make the folder of its socket: %w", err)
	}
	certs, err := newCertificates()
	if err != nil {
		os.RemoveAll(p.socket)
		return nil, err
	}
	var life context.Context
	life, p.end = context.WithCancel(context.Background())
	p.cmd, err = command(life, spec, program, p.socket, certs.pem)
	if err != nil {
		p.end()
		os.RemoveAll(p.socket)
		return nil, err
	}
	lines := newLogger(log)
	p.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  sdk.Handshake,
		VersionedPlugins: sdk.ClientSet(spec.Kind),
		Cmd:              p.cmd,
		TLSConfig:        certs.config,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		StartTimeout:     o.StartTimeout,
		Logger:           lines,
		SyncStdout:       lineWriter{lines},
		SyncStderr:       lineWriter{lines},
		SkipHostEnv:      true,
	})
	if err := p.connect(ctx, spec.Kind); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// connect waits for the handshake and dispenses the connection. A context that
// ends meanwhile kills the process, or keeps it from being started, which ends the
// wait.
func (p *process) connect(ctx context.Context, kind string) error {
	unhook := context.AfterFunc(ctx, p.end)
	defer unhook()
	rpc, err := p.client.Client()
	if err != nil {
		return fmt.Errorf("no handshake: %w", err)
	}
	conn, err := rpc.Dispense(kind)
	if err != nil {
		return err
	}
	p.conn, p.version = conn.(*grpc.ClientConn), p.client.NegotiatedVersion()
	first, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if p.about, err = pb.NewPluginClient(p.conn).Describe(first, &pb.DescribeRequest{}); err != nil {
		return fmt.Errorf("it shook hands and does not say what it is: %w", err)
	}
	if p.about.GetKind() != kind {
		return fmt.Errorf("it is a %s; the configuration says %s", p.about.GetKind(), kind)
	}
	// The kernel is to take a plugin before it takes what the plugin serves.
	os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.pid()), []byte("1000"), 0)
	return nil
}

// command is the plugin's process: its program from sealed memory, its own folder
// as working directory, an environment of what it needs and nothing else. It is
// killed when life ends.
func command(life context.Context, spec Spec, program *os.File, socket, clientCert string) (*exec.Cmd, error) {
	dir, err := filepath.Abs(filepath.Dir(spec.Path))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(life, "/proc/self/fd/3")
	cmd.Args = []string{filepath.Base(spec.Path)}
	cmd.ExtraFiles = []*os.File{program} // descriptor 3 of the child
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"TMPDIR=" + socket,
		goplugin.EnvUnixSocketDir + "=" + socket,
		"PLUGIN_CLIENT_CERT=" + clientCert,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if spec.User == "" {
		return cmd, nil
	}
	account, err := user.Lookup(spec.User)
	if err != nil {
		return nil, fmt.Errorf("user %q: %w", spec.User, err)
	}
	uid, _ := strconv.ParseUint(account.Uid, 10, 32)
	gid, _ := strconv.ParseUint(account.Gid, 10, 32)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(socket, int(uid), int(gid)); err != nil {
		return nil, fmt.Errorf("cannot give the socket's folder to %s: %w", spec.User, err)
	}
	return cmd, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) exited() bool { return p.client.Exited() }

// kill ends the process and all that it started, and waits.
func (p *process) kill() {
	p.client.Kill()
	if p.cmd.Process != nil {
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	p.end()
	os.RemoveAll(p.socket)
}

// watch returns why the process must be replaced: it ended, it does not answer, it
// outgrew its memory, or ctx is over.
func (p *process) watch(ctx context.Context, kick <-chan struct{}) error {
	const look, ping = 250 * time.Millisecond, 8 // a ping each eighth look
	tick := time.NewTicker(look)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-kick:
		case <-tick.C:
		}
		if p.exited() {
			return errors.New("the process ended")
		}
		if resident := residentBytes(p.pid()); resident > p.memory {
			return fmt.Errorf("it holds %d MiB of memory; at most %d MiB are allowed", resident>>20, p.memory>>20)
		}
		if n%ping == 0 {
			if err := p.ping(); err != nil {
				return fmt.Errorf("it does not answer: %w", err)
			}
		}
	}
}

// ping asks for a sign of life and waits a few seconds at most.
func (p *process) ping() error {
	rpc, err := p.client.Client()
	if err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() { answered <- rpc.Ping() }() // ends with the connection at the latest
	select {
	case err := <-answered:
		return err
	case <-time.After(5 * time.Second):
		return errors.New("no answer to a ping within 5 s")
	}
}

// residentBytes reads how much memory a process holds; 0 when it cannot be read.
func residentBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
