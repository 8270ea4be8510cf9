// Package web is the console: its files as they are read, and the handler that serves
// them at /ui/ of an admin address. What runs in the browser is what lies in ui; there
// is no build step, and nothing is asked from anywhere else.
package web
