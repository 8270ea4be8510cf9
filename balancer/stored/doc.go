// Package stored remembers which worker has stored which response.
package stored
