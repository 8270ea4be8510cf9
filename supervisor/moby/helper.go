package moby

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	registryapi "github.com/docker/docker/api/types/registry"
)

// helperTime is how long a credential helper may take: some ask a cloud.
var helperTime = 30 * time.Second

const (
	// maxHelped bounds what is read of its answer.
	maxHelped = 1 << 20
	// noCredentials is what a helper answers of a registry that it does not know, and
	// unnamed what some answer where they have no user's name.
	noCredentials, unnamed = "credentials not found in native keychain", "no credentials server URL"
)

// errNoHelper is wrapped by the error about a program that is not there.
var errNoHelper = errors.New("the program is not there")

// helped asks a credential helper, docker-credential-NAME, for what to show a
// registry; found is false if it knows nothing of it. What the helper has written is
// told to nobody, and its errors neither: both may hold the secret.
func helped(ctx context.Context, name, server string) (auth registryapi.AuthConfig, found bool, err error) {
	program := "docker-credential-" + name
	fail := func(format string, args ...any) (registryapi.AuthConfig, bool, error) {
		return registryapi.AuthConfig{}, false, fmt.Errorf("the credential helper %s, asked for %s: %w; `echo %s | %s get` asks it by hand", program, server, fmt.Errorf(format, args...), server, program)
	}
	if strings.ContainsAny(name, `/\`) {
		return fail("its name is no program's")
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return fail("%w in PATH", errNoHelper)
	}
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "get")
	out := &bounded{}
	cmd.Stdin, cmd.Stdout = strings.NewReader(server), out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with what it has started
	cmd.WaitDelay = time.Second
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return fail("it has not answered in %v", helperTime)
	case out.full:
		return fail("it answered more than %d bytes", maxHelped)
	case err != nil:
		if text := strings.TrimSpace(out.buf.String()); text == noCredentials || text == unnamed {
			return registryapi.AuthConfig{}, false, nil
		}
		return fail("%w", err)
	}
	var answer struct{ Username, Secret string }
	if json.Unmarshal(out.buf.Bytes(), &answer) != nil {
		return fail("its answer is not the JSON that a helper gives")
	}
	if answer.Secret == "" {
		return fail("its answer holds no secret")
	}
	if answer.Username == "<token>" {
		return registryapi.AuthConfig{ServerAddress: server, IdentityToken: answer.Secret}, true, nil
	}
	return registryapi.AuthConfig{ServerAddress: server, Username: answer.Username, Password: answer.Secret}, true, nil
}

// bounded keeps the first of what is written to it.
type bounded struct {
	buf  bytes.Buffer // not embedded: its ReadFrom would go past the bound
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > maxHelped {
		b.full = true
		return len(p), nil
	}
	return b.buf.Write(p)
}
