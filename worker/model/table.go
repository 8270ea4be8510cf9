package model

import (
	"fmt"
	"io"
	"strings"
)

// Support is one architecture of the table.
type Support struct {
	Architecture string // as config.json has it
	Families     string // what people know it by
	Kind         Kind
	Features     string // what its golden test covers
	Formats      string // of files
	Quants       string // quantised checkpoints that it reads
	Images       string // what becomes of images or sound; "": it neither sees nor hears
}

// Supported lists the architectures.
func Supported() []Support {
	var list []Support
	for _, a := range architectures() {
		list = append(list, Support{Architecture: a.name, Families: a.families, Kind: a.kind, Features: a.features,
			Formats: a.formats(), Quants: strings.Join(a.quants, ", "), Images: a.images()})
	}
	return list
}

// images tells what becomes of images or sound.
func (a architecture) images() string {
	switch {
	case a.tower != nil && a.seeing:
		return "images"
	case a.tower != nil:
		return "speech to text"
	case a.seeing:
		return "text only, no images"
	}
	return ""
}

// formats names the formats of files that an architecture is read from.
func (a architecture) formats() string {
	if a.gguf != nil {
		return "safetensors, GGUF"
	}
	return "safetensors"
}

// WriteTable writes the architectures for a terminal.
func WriteTable(w io.Writer) error {
	rows := [][]string{{"ARCHITECTURE", "KIND", "FORMATS", "QUANTISED", "MODELS", "TESTED"}}
	for _, s := range Supported() {
		rows = append(rows, []string{s.Architecture, s.Kind.String(), s.Formats, s.Quants, s.Families, s.Features})
	}
	_, err := io.WriteString(w, columns(rows))
	return err
}

// notes tells in how far an architecture differs from most others of the page.
func (s Support) notes() string {
	var notes []string
	if s.Kind != Generate {
		notes = append(notes, s.Kind.String())
	}
	if s.Formats != "safetensors" {
		notes = append(notes, "GGUF")
	}
	if s.Quants == "" {
		notes = append(notes, "none quantised")
	} else if s.Quants != strings.Join(linearQuants(), ", ") {
		notes = append(notes, s.Quants+" alone")
	}
	if s.Images != "" {
		notes = append(notes, s.Images)
	}
	return strings.Join(notes, "; ")
}

// Table is the list of architectures in docs/models.md, which a test holds to the code.
func Table() string {
	var b strings.Builder
	for _, s := range Supported() {
		fmt.Fprintf(&b, "- `%s`: %s", s.Architecture, s.Families)
		if notes := s.notes(); notes != "" {
			fmt.Fprintf(&b, " (%s)", notes)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
