// Package sound turns files of sound into what encoders of speech read: it decodes
// them, brings them to one channel of 16 kHz, cuts what is long where it is quiet,
// and makes the log-mel spectrogram that Whisper's feature extractor of Hugging Face
// transformers makes.
//
// Decode looks at what a file says of itself before it takes memory, and keeps to
// its limits by what was decoded, so that neither a header nor a well-packed silence
// takes more than that. Decoders of others run under recover.
package sound
