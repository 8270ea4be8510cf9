package moby

import (
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

// Auths returns what Host.Auth is: it reads for each image what `docker login` has
// left in the folder of Docker's client (DOCKER_CONFIG, else ~/.docker). Credentials
// that lie in a helper program and not in that file are an error that says so.
func Auths(folder string) func(image string) (string, error) {
	return func(image string) (string, error) {
		file := filepath.Join(folder, "config.json")
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("cannot read what docker login has left: %w", err)
		}
		auth, err := authOf(text, image)
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		return auth, nil
	}
}

// authOf finds an image's registry in a client's configuration.
func authOf(config []byte, image string) (string, error) {
	var c struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			IdentityToken string `json:"identitytoken"`
		} `json:"auths"`
		CredsStore  string            `json:"credsStore"`
		CredHelpers map[string]string `json:"credHelpers"`
	}
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
	entry, known := c.Auths[server]
	if !known {
		entry, known = c.Auths["https://"+server]
	}
	helper := c.CredHelpers[server]
	switch {
	case entry.Auth == "" && entry.IdentityToken == "" && (helper != "" || known && c.CredsStore != ""):
		return "", fmt.Errorf("the credentials of %s lie in a helper program; `docker --config FOLDER login %s` with a folder that names none writes them down, and DOCKER_CONFIG=FOLDER has them read", domain, domain)
	case !known:
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
