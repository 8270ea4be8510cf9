// Package importer turns what somebody runs today into a configuration of
// Roundhouse: a compose file, an haproxy.cfg, an nginx configuration, or a
// `vllm serve` command line.
//
// What it writes is complete and valid: [Import] reads its own output back
// before it returns it. What it could not carry over, and what means something
// else now, stands in comments at the top, so that the file itself says what
// to look at. It never guesses in silence and never touches what runs.
package importer
