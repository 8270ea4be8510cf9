// Package memory bounds the bytes that the door holds of requests and answers: a
// request's body with the memory booked for it, and the promises of bodies that
// have still to come.
package memory
