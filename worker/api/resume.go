package api

// Resume is the value of "roundhouse_resume" in a chat or completion request:
// the same request, of which TokenIDs were already sent to the client under
// ID and Created. The worker counts them as output (penalties, limits, stop
// strings, grammar, parsers, seeds, usage) and sends only what follows them,
// so that the client sees one stream.
type Resume struct {
	ID       string  `json:"id"`
	Created  int64   `json:"created"`
	TokenIDs []int32 `json:"token_ids"`
}
