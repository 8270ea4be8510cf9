// Package supervisor runs the workers of every pool and the door before them:
// it starts, warms, watches, drains, rotates and adopts.
//
// One goroutine, the loop, owns all state. It observes (drivers, doors,
// probes), asks core.Next what to do, writes the new intent into the journal,
// publishes the worker set to the doors, and only then acts. Everything slow
// runs in goroutines of its own that report back to the loop; the admin API's
// handlers ask the loop and wait. Run returns when all of them have ended.
//
// The supervisor may die at any moment. What it intends is in the journal,
// what runs is known by locks and labels, and the doors serve on with the last
// worker set; its successor goes on from there.
package supervisor
