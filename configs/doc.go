// Package configs reads the one configuration file of Roundhouse, and ships
// the configurations that come with it.
//
// [Load] turns a file into a [Config] in which nothing is left open: every
// default is filled in, every count of workers is spelt out, every value has
// been checked against every other. What is wrong is returned as
// [Diagnostics]: a syntax error alone, since what follows it cannot be
// trusted, and all other faults at once, each with file, line, column and the
// line itself.
//
// The file is HCL, and less than HCL allows: blocks, values, env("NAME") and
// file("path"). There are no variables, operators, conditions or loops, so
// that a file means what it says and none can take long to read. Its size and
// nesting are bounded before it is parsed.
//
// What came out of env() or file(), and what an attribute such as token or
// api_key holds, is never printed: not in a diagnostic, not in a source line,
// not in JSON ([Secret]).
//
// Everything about HCL stays in this package. Config is plain data; package
// supervisor hands the door's part over as JSON.
package configs
