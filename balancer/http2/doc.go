// Package http2 speaks HTTP/2 with clients. Each stream becomes a connection in memory
// that speaks HTTP/1.1, so that all that is checked, bounded and promised of requests
// is so in one place, whatever the client speaks. Frames, flow control and their floods
// are the business of net/http's own server.
package http2
