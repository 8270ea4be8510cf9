// Command routers measures the door beside other routers, in real time, on the same
// simulated engines over HTTP (package sim): nginx and HAProxy by the fewest
// connections, vllm-router and sglang-router under each of their policies, the door
// under each of its own. `make bench-routers` runs it.
//
// A cell is one traffic on one fleet (sim.Cell). Of each cell and seed every router
// gets the same requests at the same times, on engines of its own, started afresh; a
// few routers run side by side, in an order that changes with the seed. Requests are
// sent when they are due, whatever became of those before; latencies count from then,
// and how late the client itself was is printed. With -simulated the same cells run in
// simulated time, and -agree runs both and tells how far their orders agree.
package main
