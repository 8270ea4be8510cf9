// Package keyfile keeps the keys that are made at run time, and is the part of the admin
// API that makes, lists and revokes them.
package keyfile
