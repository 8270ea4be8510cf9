package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// keyCommand makes a client's key.
func keyCommand(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "key NAME",
		Short: "Make a key for a client, and the block that lets it in",
		Long: `Make a key for a client. The key is printed once and kept nowhere; the block
that goes into the configuration's door holds its SHA-256 only. To replace a
key, put the new sha256 beside the old one, reload, and take the old one out
when the client has changed over.`,
		GroupID: groupConfig,
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			key := newKey()
			sum := sha256.Sum256([]byte(key))
			digits := hex.EncodeToString(sum[:])
			block := fmt.Sprintf("key %q {\n  sha256 = [%q]\n}", args[0], digits)
			if asJSON {
				return c.printJSON(map[string]any{"schema": 1, "name": args[0], "key": key, "sha256": digits, "block": block})
			}
			fmt.Fprintf(c.err, "The key of %s, for its client. It is shown this once.\n", args[0])
			fmt.Fprintln(c.out, key)
			fmt.Fprintf(c.err, "\nIts block, for the door block of the configuration; then `roundhouse reload`:\n")
			fmt.Fprintln(c.out, block)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the key and its block as JSON")
	return cmd
}

// newKey returns 160 random bits, in letters that survive being read aloud.
// The "sk-" is what clients expect of a key.
func newKey() string {
	var bits [20]byte
	_, _ = rand.Read(bits[:]) // ends the program rather than fail
	return "sk-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(bits[:]))
}
