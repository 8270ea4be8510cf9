package balancer

import (
	"roundhouse/balancer/certificate"
	"roundhouse/configs"
)

// certify finds the certificate of a worker set. Where its files do not load, the
// old one stays, and so does plain HTTP: with it comes the error. d.mu is held.
func (d *Door) certify(want *configs.TLS) (*certificate.Certificate, error) {
	if want == nil {
		return nil, nil
	}
	old := d.cert
	if old != nil && old.Files == *want {
		_, err := old.Refresh()
		return old, err
	}
	c, err := certificate.Read(*want)
	if err != nil {
		return old, err
	}
	return c, nil
}

// recertify looks whether the certificate's files have changed. d.mu is held.
func (d *Door) recertify() {
	v := d.current()
	want := v.set.Door.TLS
	if want == nil {
		return
	}
	if d.cert != nil && d.cert.Files == *want {
		changed, err := d.cert.Refresh()
		switch {
		case err != nil:
			d.faults.note(d.log, faultCertificate, err)
		case changed:
			d.faults.note(d.log, faultCertificate, nil)
			d.log.Info("the certificate was renewed", "cert", want.Cert)
		}
		return
	}
	if c, err := certificate.Read(*want); err == nil { // that of the set in force did not load before
		next := *v
		d.cert, next.tls = c, c.Shown(next.set.Door.HTTP2)
		d.view.Store(&next)
		d.faults.note(d.log, faultCertificate, nil)
	}
}
