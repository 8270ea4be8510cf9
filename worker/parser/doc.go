// Package parser takes a model's text apart as it comes: reasoning, content,
// and calls of tools, each family of models in its own notation.
//
// A Parser is fed pieces of text and returns what is new in each part. It
// holds back what could still become a marker, and nothing else, so a stream
// says the same as the whole text parsed at once, however it was cut; a test
// holds every parser to that.
//
// What looks like a call and is none, because its JSON is broken or its name
// missing, is content: text of a model is never lost. Once a call's name has
// been handed out it stays a call, even if its arguments break off.
//
// The markers of some families are special tokens (Mistral's [TOOL_CALLS],
// for one). Text for this package must therefore be decoded with special
// tokens kept wherever a tool parser is in use, but for those that end the
// output.
package parser
