package server

import "net/http"

// asked is a request that was taken in and can be answered.
type asked interface {
	streams() bool
	answer(w http.ResponseWriter, r *http.Request)
	stream(w http.ResponseWriter, r *http.Request)
}

// route is a handler that reads a body of type F, has it taken in, and answers
// in one piece or as a stream. What is wrong with the request is told by
// refuse.
func route[F any, A asked](s *Server, take func(*http.Request, *F) (A, *apiError), refuse func(http.ResponseWriter, *apiError)) http.HandlerFunc {
	return s.generating(func(w http.ResponseWriter, r *http.Request) {
		var f F
		if err := readBody(r, s.cfg.BodyLimit, &f); err != nil {
			refuse(w, err)
			return
		}
		a, err := take(r, &f)
		switch {
		case err != nil:
			refuse(w, err)
		case a.streams():
			a.stream(w, r)
		default:
			a.answer(w, r)
		}
	})
}

// streams reports whether the answer is wanted piece by piece.
func (j *job) streams() bool { return j.fields.Stream }
