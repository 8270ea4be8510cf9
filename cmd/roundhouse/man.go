package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes the manual pages; a package's build runs it.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write the manual pages into a folder",
		Hidden: true,
		Args:   usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writePages(cmd.Root(), args[0])
		},
	}
}

// writePages writes a page of cmd and of each command below it.
func writePages(cmd *cobra.Command, folder string) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(folder, name+".1"), manPage(cmd), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := writePages(sub, folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// manPage is a command's page in the man macros of roff.
func manPage(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	dashed := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %q 1 \"\" \"Roundhouse\" \"Roundhouse Manual\"\n", strings.ToUpper(dashed))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(dashed), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n")
	for paragraph := range strings.SplitSeq(long, "\n\n") {
		fmt.Fprintf(&b, ".PP\n%s\n", roff(strings.ReplaceAll(paragraph, "\n", " ")))
	}
	options := false
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if !options {
			b.WriteString(".SH OPTIONS\n")
			options = true
		}
		names := "--" + f.Name
		if f.Shorthand != "" {
			names = "-" + f.Shorthand + ", " + names
		}
		value, about := pflag.UnquoteUsage(f)
		fmt.Fprintf(&b, ".TP\n.B %s %s\n%s\n", roff(names), roff(value), roff(about))
	})
	see := []string{}
	if cmd.HasParent() {
		see = append(see, strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-"))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			see = append(see, strings.ReplaceAll(sub.CommandPath(), " ", "-"))
		}
	}
	if len(see) > 0 {
		b.WriteString(".SH SEE ALSO\n")
		for i, page := range see {
			end := ","
			if i == len(see)-1 {
				end = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(page), end)
		}
	}
	return b.Bytes()
}

// roff escapes what roff would read as its own.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
