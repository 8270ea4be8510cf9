package extproc

// kind is what a message of the gateway's is, by its number in the protocol.
type kind byte

const (
	requestHeaders   kind = 2
	responseHeaders  kind = 3
	requestBody      kind = 4
	responseBody     kind = 5
	requestTrailers  kind = 6
	responseTrailers kind = 7
)

// The ways in which a gateway gives a body to a picker.
const (
	bodyNone            = 0
	bodyStreamed        = 1
	bodyBuffered        = 2
	bodyBufferedPartial = 3
	bodyDuplex          = 4
	bodyGRPC            = 5
)

// message is what the gateway says. Only what a picker reads of it is kept.
type message struct {
	kind   kind // 0: none that is known
	fields [][2]string
	end    bool   // end_of_stream
	body   []byte // valid until the next message
	modes  *modes // of the first message; nil: it does not say

	subset    []string // the endpoints to choose from
	hasSubset bool
	served    string // the endpoint that answers
}

// modes are the ways of both bodies.
type modes struct{ request, response int }

// duplex reports whether a body goes through the picker piece by piece, so that the
// picker must give back what is to go on.
func duplex(mode int) bool { return mode == bodyDuplex || mode == bodyGRPC }

// response is what the picker says.
type response struct {
	to       kind // the message that it answers
	set      [][2]string
	remove   []string
	clear    bool // the gateway is to look for the route again
	endpoint string

	body     []byte
	streamed bool // body is a piece of a body that goes through
	replaced bool // body stands in the place of the whole one
	end      bool // of the body

	refusal *Refusal // the whole answer to the request; nil: there is none
}

// Refusal is the answer that a picker gives in the place of a worker's.
type Refusal struct {
	Status int
	Fields [][2]string
	Body   []byte
	Code   string // for the gateway's log
}
