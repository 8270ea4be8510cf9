// Package anomaly notices that a worker, or a pool, is not as it was or not as its
// peers are, where no rule of measure/diagnose has a bound: minute by minute, by robust
// statistics, and seldom wrong. It is pure: [Minute] goes in, [Incident] comes out, and
// nothing is done about it but telling.
//
// A worker is compared with its peers in the same minute first, which needs no history
// and stays right when traffic changes; without three of them, and for the pool as a
// whole, with the same quarter of an hour of former days, once there are four. What
// differs is divided by how much it usually differs (median and MAD) and summed up both
// ways (CUSUM). An alarm also wants an effect that people would notice.
package anomaly
