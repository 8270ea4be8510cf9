package balancer

// ThroughFasthttp makes fasthttp read every request, also those that the door
// would read itself.
func (d *Door) ThroughFasthttp(all bool) { d.fasthttpOnly = all }
