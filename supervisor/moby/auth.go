package moby

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"
	registryapi "github.com/docker/docker/api/types/registry"
)

// hub is how Docker's client files what it knows of docker.io.
const hub = "https://index.docker.io/v1/"

// Auths returns what Host.Auth is: it finds for each image what `docker login` has left
// in the folder of Docker's client (DOCKER_CONFIG, else ~/.docker), in its file or with
// the credential helpers that the file names.
func Auths(folder string) func(ctx context.Context, image string) (string, error) {
	return func(ctx context.Context, image string) (string, error) {
		file := filepath.Join(folder, "config.json")
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("cannot read what docker login has left: %w", err)
		}
		auth, err := authOf(ctx, text, image)
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		return auth, nil
	}
}

// known is a client's configuration, as far as it tells of registries.
type known struct {
	Auths       map[string]login  `json:"auths"`
	CredsStore  string            `json:"credsStore"`
	CredHelpers map[string]string `json:"credHelpers"`
}

// login is what the file itself holds of a registry.
type login struct {
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
}

// authOf finds what to show an image's registry, encoded as engines take it; empty:
// nobody has logged in there. As with Docker's client a registry's own helper goes
// before the one for all, and that before the file.
func authOf(ctx context.Context, config []byte, image string) (string, error) {
	var c known
	if err := json.Unmarshal(config, &c); err != nil {
		return "", err
	}
	named, err := reference.ParseDockerRef(image)
	if err != nil {
		return "", fmt.Errorf("the image %s: %w", image, err)
	}
	domain := reference.Domain(named)
	server := domain
	if domain == "docker.io" {
		server = hub
	}
	entry, there := c.Auths[server]
	if !there {
		entry, there = c.Auths["https://"+server]
	}
	own := c.CredHelpers[server]
	if helper := cmp.Or(own, c.CredsStore); helper != "" {
		auth, found, err := helped(ctx, helper, server)
		switch {
		case found:
			return registryapi.EncodeAuthConfig(auth)
		// A store that some desktop has left behind hinders nobody who pulls from
		// where nobody has logged in, or whose login lies in the file.
		case errors.Is(err, errNoHelper) && own == "" && (!there || entry != login{}):
		case err != nil:
			return "", err
		}
	}
	if entry == (login{}) {
		return "", nil
	}
	out := registryapi.AuthConfig{ServerAddress: server, IdentityToken: entry.IdentityToken}
	if entry.Auth != "" {
		pair, err := base64.StdEncoding.DecodeString(entry.Auth)
		if err != nil {
			return "", fmt.Errorf("auths of %s: %w", domain, err)
		}
		var found bool
		if out.Username, out.Password, found = strings.Cut(strings.TrimRight(string(pair), "\x00"), ":"); !found {
			return "", fmt.Errorf("auths of %s hold no user and password", domain)
		}
	}
	return registryapi.EncodeAuthConfig(out)
}
