package core

import "roundhouse/configs/workerid"

// Turn is one worker's turn of a rotation to come.
type Turn struct {
	Worker   string `json:"worker"`
	Obstacle string `json:"obstacle"` // why not now; empty: it could begin
	Skipped  bool   `json:"skipped"`  // it needs no turn
}

// Preview returns the turns to come of a pool's running rotation, each as if
// it were the next.
func Preview(d Desired, o Observed, pool string) []Turn {
	p, err := d.pool(pool)
	if err != nil {
		return nil
	}
	r := d.Intent.Rotations[pool]
	s := &step{d: d, o: o, in: d.Intent.Clone(), preview: true}
	out := []Turn{}
	for _, name := range r.Queue {
		t := Turn{Worker: workerid.Of(pool, name)}
		if t.Skipped = !s.canTurn(p, name); !t.Skipped {
			t.Obstacle = s.obstacle(p, &r, name)
		}
		out = append(out, t)
	}
	return out
}
