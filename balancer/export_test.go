package balancer

import "roundhouse/balancer/control"

// Decision explains the choice made for a request.
func (d *Door) Decision(id string) (control.Decision, bool) { return d.why.find(id) }

// ThroughFasthttp makes fasthttp read every request, also those that the door
// would read itself.
func (d *Door) ThroughFasthttp(all bool) { d.fasthttpOnly = all }
