// Package ports lends tests the TCP ports that they must name before a program
// listens there.
//
// The kernel gives away, to whoever listens at port 0 or connects, ports of one
// range ([net.ipv4.ip_local_port_range]). A port of it that a test found free is
// not the test's: another program may have it a moment later. [Free] lends ports
// outside of that range, each under a lock that lasts as long as the test, so that
// no two tests, packages or runs have the same one.
//
// [net.ipv4.ip_local_port_range]: https://docs.kernel.org/networking/ip-sysctl.html
package ports
