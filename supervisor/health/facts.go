package health

import (
	"roundhouse/configs"
	"roundhouse/measure/diagnose"
)

// Facts are what a configuration tells the rules.
func Facts(c *configs.Config) diagnose.Facts {
	var f diagnose.Facts
	for i := range c.Pools {
		p := &c.Pools[i]
		x := diagnose.Pool{Name: p.Name, Policy: p.Policy, Static: p.Driver == "static", Workers: len(p.Workers), Args: p.Engine.Args, MaxModelLen: p.Engine.MaxModelLen}
		for _, w := range p.Workers {
			if w.KVTokens > 0 {
				x.ByHand = append(x.ByHand, w.Name)
			}
		}
		for _, r := range c.Routes {
			for _, t := range r.Targets {
				for _, name := range p.Engine.ServedModelName {
					if t.Model == name && r.Sticky != "none" {
						x.Sticky = r.Sticky
					}
				}
			}
		}
		f.Pools = append(f.Pools, x)
	}
	for _, k := range c.Door.Keys {
		if k.MaxConcurrent > 0 {
			f.Keys = append(f.Keys, diagnose.Key{Name: k.Name, Concurrent: k.MaxConcurrent})
		}
	}
	return f
}
