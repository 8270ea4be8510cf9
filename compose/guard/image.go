package guard

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"
)

// imageID is how an engine names an image by its content.
var imageID = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// normal is an image's name as an engine understands it: with its registry, and with
// the digest or else the tag. Names that are none are never equal to another.
func normal(image string) (reference.Named, bool) {
	if imageID.MatchString(image) {
		return nil, false
	}
	named, err := reference.ParseDockerRef(image)
	return named, err == nil
}

// same reports whether two names stand for one image, however they are written.
func same(a, b string) bool {
	if imageID.MatchString(a) || imageID.MatchString(b) {
		return a == b
	}
	x, ok := normal(a)
	y, fine := normal(b)
	return ok && fine && x.String() == y.String()
}

// image returns how the engine is told a worker's image: by the configuration's name, or
// by the identity that this name had, which stays while the name moves on.
func (g *Guard) image(r *http.Request, w worker, asked string) (string, error) {
	switch {
	case asked == "":
		return "", fmt.Errorf("the Image is missing")
	case same(asked, w.pool.Container.Image):
		if named, ok := normal(asked); ok {
			return reference.FamiliarString(named), nil
		}
		return asked, nil
	case imageID.MatchString(asked) && g.knows(r, w.pool.Name, asked):
		return asked, nil
	}
	return "", fmt.Errorf("Image: %q is no image of the pool %q", asked, w.pool.Name)
}

// knows reports whether an identity is that of a pool's image: now, or as it was met
// before, in a container of the pool or under the pool's name for it.
func (g *Guard) knows(r *http.Request, pool, id string) bool {
	if !g.met(pool, id) {
		_, _ = g.inspectImage(r, g.policy().pools[pool].Container.Image) // which is then met, or is not there
	}
	return g.met(pool, id)
}

func (g *Guard) met(pool, id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ids[pool][id]
}

// meet remembers that a pool's image had an identity.
func (g *Guard) meet(pool, id string) {
	if !imageID.MatchString(id) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids[pool] == nil {
		g.ids[pool] = map[string]bool{}
	}
	g.ids[pool][id] = true
}

// inspectImage asks the engine for an image of a pool, and remembers its identity. It
// reports whether the image is there.
func (g *Guard) inspectImage(r *http.Request, name string) (bool, error) {
	if named, ok := normal(name); ok {
		name = reference.FamiliarString(named)
	} else if !imageID.MatchString(name) {
		return false, fmt.Errorf("%q is no image's name", name)
	}
	var about struct{ ID string }
	found, err := g.ask(r.Context(), "/images/"+name+"/json", &about)
	if !found || err != nil {
		return false, err
	}
	for pool, image := range g.policy().images() {
		if same(image, name) {
			g.meet(pool, about.ID)
		}
	}
	return true, nil
}

// look lets the configuration's images be asked for, by name or identity.
func look(g *Guard, r *http.Request, name string) (*order, error) {
	if err := onlyQuery(r, nil); err != nil {
		return nil, err
	}
	for pool, image := range g.policy().images() {
		switch {
		case imageID.MatchString(name) && g.knows(r, pool, name):
			return &order{path: "/images/" + name + "/json"}, nil
		case same(image, name):
			if _, err := g.inspectImage(r, name); err != nil {
				return nil, err
			}
			if named, ok := normal(name); ok {
				name = reference.FamiliarString(named)
			}
			return &order{path: "/images/" + name + "/json"}, nil
		}
	}
	return nil, fmt.Errorf("%q is no image of the configuration", name)
}

// pull lets the configuration's images be fetched. Clients send a digest as a tag.
func pull(g *Guard, r *http.Request, _ string) (*order, error) {
	q := r.URL.Query()
	if err := onlyQuery(r, queries{"fromImage": anyText, "tag": anyText}); err != nil {
		return nil, err
	}
	name := q.Get("fromImage")
	switch tag := q.Get("tag"); {
	case strings.Contains(tag, ":"):
		name += "@" + tag
	case tag != "":
		name += ":" + tag
	}
	named, ok := normal(name)
	if !ok {
		return nil, fmt.Errorf("%q is no image's name", name)
	}
	for _, image := range g.policy().images() {
		if !same(image, name) {
			continue
		}
		tag := ""
		switch n := named.(type) {
		case reference.Digested:
			tag = n.Digest().String()
		case reference.Tagged:
			tag = n.Tag()
		}
		o := &order{path: "/images/create", query: url.Values{"fromImage": {reference.FamiliarName(named)}, "tag": {tag}}}
		return o, o.authorize(r)
	}
	return nil, fmt.Errorf("%q is no image of the configuration", name)
}

// authorize takes what is to be shown to the registry over, as the type that it is.
func (o *order) authorize(r *http.Request) error {
	header := r.Header.Get(registry.AuthHeader)
	if header == "" {
		return nil
	}
	given, err := registry.DecodeAuthConfig(header)
	if err != nil {
		return fmt.Errorf("%s is not what `docker login` leaves", registry.AuthHeader) // without its words: they may hold the password
	}
	text, err := registry.EncodeAuthConfig(*given)
	if err != nil {
		return err
	}
	o.header = http.Header{registry.AuthHeader: {text}}
	return nil
}
