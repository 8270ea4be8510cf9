// Package wait is the queue of a pool: fair shares between keys, strict classes,
// and room for those who wait. It knows claims on the ledger and no requests.
package wait
