// Package wire holds the door's parsers of outside input: the head of a
// request, the frames of a body, the JSON of a request, the events of a
// stream, the head of an answer. They work in place on the bytes that a
// socket gave, allocate nothing on the way of a good message, and refuse what
// two readers could understand in two ways.
//
// Nothing here reads from a socket, keeps time or starts a goroutine.
package wire
