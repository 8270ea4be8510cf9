package extproc

import "context"

// Host chooses for the requests of a gateway.
type Host interface {
	// Begin takes a request whose head has come.
	Begin(ctx context.Context, h *Head) Exchange
}

// Head is what of a request is known before its body.
type Head struct {
	Method, Path, Query string
	Fields              [][2]string // the names in lower case
	Objective           string      // what the request is for, by name
	Fairness            string      // the flow that it shares room with
	Rewrite             string      // the model that the gateway wants it served by

	Subset    []string // the endpoints to choose from, where Narrowed
	Narrowed  bool
	Bodiless  bool // no body is to be seen: it has none, or it passes elsewhere
	Unwatched bool // the answer is not to be seen
}

// Choice is where a request goes, and as what.
type Choice struct {
	Endpoints string
	Set       [][2]string // fields of the request
	Remove    []string
	Body      []byte // in the place of the one that came; nil: as it came
	// Told is closed once the request is to end: an operator ends it, or the host.
	Told <-chan struct{}
}

// Exchange is one request. Its methods are called by one goroutine, but for Part.
type Exchange interface {
	// Reserve books memory for n more bytes of the body.
	Reserve(n int64) *Refusal
	// Choose finds an endpoint, and waits for one. Body is the host's until GaveBack.
	Choose(body []byte) (*Choice, *Refusal)
	// GaveBack says that the body is held no more.
	GaveBack()
	// Answered takes the head of the answer, and returns fields to be set in it and
	// whether the body is to be changed.
	Answered(a *Answer) (set [][2]string, rewrites bool)
	// Piece takes a piece of the answer's body, and returns what is to go on in its place
	// where the body is changed.
	Piece(b []byte, end bool) []byte
	// End says that there is no more to be seen. It is called once.
	End(how Ending)
	// Part says how a request that was told to end does: with a refusal, or unseen.
	Part() *Refusal
}

// Answer is the head of a worker's answer.
type Answer struct {
	Status int
	Type   string
	Served string // the endpoint that gave it; empty: the gateway does not say
}

// Ending is how the picker's part in a request ended.
type Ending byte

// The endings.
const (
	Whole   Ending = iota // the answer came whole
	Refused               // it got the picker's own
	Unseen                // the answer passes where the picker does not see it
	Broken                // the client has left, or the worker has died
)
