package cpu

// ShareAll has threads share even steps that are too small for it.
func (b *Backend) ShareAll() { b.shareAll = true }
