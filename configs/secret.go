package configs

import (
	"fmt"
	"io"
	"log/slog"
)

// hiddenText stands wherever a secret would.
const hiddenText = "***"

// Reveal returns the secret itself. Only the code that sends it or compares
// with it may call this.
func (s Secret) Reveal() string { return string(s) }

// String returns "***", or nothing where there is no secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hiddenText
}

// Format writes what String returns, whatever the verb: %x and %d of a string
// would spell the secret out.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns what String returns, so that JSON never holds a secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns what String returns.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
