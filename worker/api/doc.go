// Package api holds the words that a worker shares with those who talk to it:
// the status report, the headers between door and worker, and the field that
// resumes a stream. It is a leaf: the door and the supervisor import it and
// nothing else of the worker.
package api
