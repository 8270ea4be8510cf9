// Package speech knows how Whisper writes down what it hears: the tokens that a
// text begins with, which tokens may follow which, and the stretches of time that a
// text with times consists of.
//
// Decoding sound is worker/sound's, and the models are worker/model's.
package speech
