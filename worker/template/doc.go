// Package template renders chat templates: the Jinja programs in
// tokenizer_config.json that turn messages into a model's prompt.
//
// It is the part of Jinja that such templates use, with the settings that
// transformers renders them with: trim_blocks and lstrip_blocks, loop
// controls, generation blocks, tojson that prints as Python's json.dumps
// without escaping, raise_exception, strftime_now, and a sandbox in which
// nothing that was passed in can be changed. Values behave as Python's do: a
// string is indexed by character, True prints as True, 7 // 2 is 3. Inclusion
// of other files, and filters that nobody can use in a prompt (random,
// urlize), are absent, and Parse says so.
//
// A template is outside input, and so are the messages. Three rules bound
// them: Limits end a template that runs too long or prints too much; nothing
// of the host is reachable, since values are data and the few functions named
// here; and every string remembers which of its characters came from outside.
// Render hands the text out in segments accordingly, so that the tokenizer
// reads special tokens where the template wrote them and nowhere else.
package template
