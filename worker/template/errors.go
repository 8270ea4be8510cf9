package template

import "fmt"

// Error is a mistake in a template, or one that it made with its input.
type Error struct {
	Line int
	Msg  string
}

func (e *Error) Error() string { return fmt.Sprintf("chat template, line %d: %s", e.Line, e.Msg) }

// RaisedError is what a template says through raise_exception: that it does
// not take such messages. Its text is meant for the client.
type RaisedError struct{ Message string }

func (e *RaisedError) Error() string { return e.Message }

// LimitError is returned when a template exceeds one of its Limits.
type LimitError struct {
	Line  int
	Limit string // the field of Limits
	Value int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("chat template, line %d: stopped at the limit of %s, which is %d", e.Line, e.Limit, e.Value)
}
