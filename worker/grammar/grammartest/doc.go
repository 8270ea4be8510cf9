// Package grammartest has the schemas that grammars and engines are held to,
// and a validator of JSON Schema that shares no code with the compiler.
package grammartest
