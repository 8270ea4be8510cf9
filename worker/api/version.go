package api

// Version is what this build calls itself; the Makefile sets it at link time.
var Version = "unknown"
