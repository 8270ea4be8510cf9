// Package data makes the requests of a benchmark: texts of a wanted length, shared
// prefixes, files that people have, recorded traffic, and questions whose answers
// can be judged. Nothing is downloaded.
//
// A text is made of words whose tokens were counted one by one beforehand, so that
// any length is met without asking for each prompt. The service counts, by
// /tokenize; a service without that route counts by the usage of one-token answers.
package data
