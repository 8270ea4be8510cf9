package sdk

import (
	plugin "github.com/hashicorp/go-plugin"
)

// ProtocolVersion is the version of plugins/proto that this package speaks. Host
// and plugin agree on the highest that both know, or the host refuses to start it.
const ProtocolVersion = 1

// Handshake tells a plugin that it was started by Roundhouse and not by hand. It
// is no secret and protects nothing; the socket's certificates do.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  ProtocolVersion,
	MagicCookieKey:   "ROUNDHOUSE_PLUGIN",
	MagicCookieValue: "turntable",
}

// The kinds of plugin, as the configuration names them.
const (
	KindPolicy   = "policy"
	KindFilter   = "filter"
	KindDriver   = "driver"
	KindNotifier = "notifier"
)
