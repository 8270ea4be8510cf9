// Package media turns what clients send besides text into what towers read: it
// decodes pictures, brings them to RGB, and makes the rows of features that a
// processor of Hugging Face transformers makes of them.
//
// # What is the same for all
//
// Decode looks at the header before it takes memory, so that a small file that
// promises an enormous picture is refused by what it promises. Pictures are
// turned as EXIF says, and what is transparent lies on white. Resize is Pillow's
// to the bit, in the order of passes of its version 13. A Processor does the
// rest for one family, and its digest names an item: the same bytes under the
// same settings are the same rows.
//
// # What is not here
//
// Fetching is the server's, towers are in worker/model, and when a tower runs is
// the engine's. Nothing here keeps anything from one call to the next.
package media
