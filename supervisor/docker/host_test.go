package docker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"roundhouse/compose/guard"
	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/supervisor/moby"
	"roundhouse/test/ports"
)

// certificates makes an authority of the tests' own, and what it signs for the
// engine and for its client, where Docker's client expects them.
func (l *lab) certificates(t *testing.T) {
	t.Helper()
	if l.secure.URL != "" {
		return // a restart
	}
	at, giveBack, err := ports.Lend() // for longer than this test
	if err != nil {
		t.Fatal(err)
	}
	l.port = giveBack
	l.secure = moby.Host{URL: fmt.Sprintf("tcp://127.0.0.1:%d", at), CertPath: l.dir, TLSVerify: true}
	var authority *x509.Certificate
	var signer *ecdsa.PrivateKey
	for i, file := range []string{"ca", "server", "cert"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: file}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IsCA: i == 0, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if i == 0 {
			c.KeyUsage |= x509.KeyUsageCertSign
			authority, signer = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, authority, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		name := map[string]string{"ca": "ca-key.pem", "server": "server-key.pem", "cert": "key.pem"}[file]
		for path, block := range map[string]*pem.Block{file + ".pem": {Type: "CERTIFICATE", Bytes: der}, name: {Type: "PRIVATE KEY", Bytes: private}} {
			if err := os.WriteFile(filepath.Join(l.dir, path), pem.EncodeToMemory(block), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// live takes a container through its life over a way to the engine.
func live(t *testing.T, host moby.Host) {
	t.Helper()
	d, err := New(host, strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	name := strings.ToLower(filepath.Base(t.Name()))
	spec := specFor("rh-over-"+name, 1)
	if err := d.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.engine.ContainerRemove(context.WithoutCancel(t.Context()), moby.Name(spec), container.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	}()
	i := drivertest.Only(t, d)
	drivertest.Until(t, "it answers", func() bool { return healthy(i.URL) })
	if d.can().Measures {
		drivertest.Until(t, "its memory is told", func() bool { return drivertest.Only(t, d).Memory > 0 })
	} else if i := drivertest.Only(t, d); i.Memory > 0 {
		t.Errorf("its memory: %+v; the engine: %+v", i, d.can())
	}
	drivertest.Until(t, "its output is there", func() bool {
		logs, err := d.Logs(t.Context(), i.ID, driver.LogOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer logs.Close()
		text, err := io.ReadAll(logs)
		return err == nil && strings.Contains(string(text), "worker fake")
	})
	for len(d.Changed()) > 0 {
		<-d.Changed()
	}
	if err := d.Stop(t.Context(), i.ID, 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	drivertest.Hear(t, "its end", d)
	if i := drivertest.Only(t, d); i.Running || i.Ended != "exit status 0" {
		t.Errorf("after its stop: %+v", i)
	}
}

// The same life over TCP with certificates, through a guarded socket, and over
// ssh, where this machine has its server.
func TestHosts(t *testing.T) {
	l := engineFor(t)
	t.Run("tls", func(t *testing.T) {
		if l.daemon == nil {
			t.Skip("the Docker engine that answers here is not the tests' own")
		}
		live(t, l.secure)
		d, err := New(moby.Host{URL: l.secure.URL}, "stranger", false)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if list, err := d.List(t.Context()); err == nil {
			t.Errorf("without a certificate the engine answers %v", list)
		}
	})
	t.Run("guarded", func(t *testing.T) { live(t, guarded(t, l)) })
	t.Run("ssh", func(t *testing.T) { live(t, overSSH(t, l)) })
}

// guarded is the engine behind the proxy that compose.yaml puts before it.
func guarded(t *testing.T, l *lab) moby.Host {
	t.Helper()
	cfg, err := configs.Parse("c.hcl", []byte(fmt.Sprintf(`
pool "pool" {
  driver   = "docker"
  image    = %q
  shm_size = "64MiB"
  ulimits  = { nofile = 4096 }
  worker "rh-over-guarded" {
  }
}`, testImage)), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	policy := guard.PolicyOf(cfg, strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")))
	engine := strings.TrimPrefix(l.client.DaemonHost(), "unix://")
	socket := filepath.Join(t.TempDir(), "guard.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := guard.New(engine, func() *guard.Policy { return policy }, slog.New(slog.NewTextHandler(t.Output(), nil)))
	server := &http.Server{Handler: g}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		<-ended
		g.Close()
	})
	return moby.Host{URL: "unix://" + socket}
}

// overSSH starts an ssh server for this user alone, and puts a client before the
// path that knows its keys.
func overSSH(t *testing.T, l *lab) moby.Host {
	t.Helper()
	server, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		t.Skip("no ssh server is here (Debian: openssh-server)")
	}
	client, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("no ssh client is here (Debian: openssh-client)")
	}
	dir := t.TempDir()
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Skip("the ssh server wants /run/sshd: " + err.Error())
	}
	at := ports.Free(t)
	config := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/user.pub\nStrictModes no\nUsePAM no\nPidFile none\nSetEnv DOCKER_HOST=%s\n", at, dir, dir, l.client.DaemonHost())
	wrapper := fmt.Sprintf("#!/bin/sh\nexec %s -F none -i %s/user -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=%s/known \"$@\"\n", client, dir, dir)
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	daemon := exec.Command(server, "-D", "-e", "-f", filepath.Join(dir, "config"))
	daemon.Stderr = t.Output()
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	})
	address := fmt.Sprintf("127.0.0.1:%d", at)
	drivertest.Until(t, "the ssh server answers", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return moby.Host{URL: "ssh://root@" + address}
}
