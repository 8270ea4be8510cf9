package grammar

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// bounds are the limits of a number; nil: none.
type bounds struct {
	low, high         *big.Rat
	openLow, openHigh bool     // the limit itself is left out
	decimals          int      // digits behind the point, at most
	every             *big.Int // multipleOf, if it is a whole number above 1
}

// maxDecimals is how many digits behind the point a bounded number has, if
// its bounds do not have more; farLimit stands in for a limit that is absent.
const maxDecimals = 6

var farLimit = new(big.Rat).SetInt64(999_999_999_999_999)

// numberSchema is an integer or a number with its limits.
func (b *schemaBuilder) numberSchema(o *object, whole bool, path string) expr {
	w := readBounds(o, whole, path)
	if w.every != nil {
		return b.multiples(w, path)
	}
	if w.low == nil && w.high == nil && w.decimals == maxDecimals {
		return b.number()
	}
	if w.low == nil && w.high == nil && o.vals["multipleOf"] == nil {
		if whole {
			return b.integer()
		}
		return b.number()
	}
	if w.low == nil {
		w.low = new(big.Rat).Neg(farLimit)
		if w.high != nil && w.high.Cmp(w.low) < 0 {
			failf("%s: maximum is below what numbers of 15 digits reach", path)
		}
	}
	if w.high == nil {
		w.high = farLimit
	}
	var alts altExpr
	for k := 0; k <= w.decimals; k++ {
		if x := b.scaled(w, k); x != nil {
			alts = append(alts, x)
		}
	}
	if len(alts) == 0 {
		failf("%s: no number lies between the limits", path)
	}
	return alts
}

func readBounds(o *object, whole bool, path string) bounds {
	w := bounds{decimals: maxDecimals}
	read := func(key string) *big.Rat {
		v, ok := o.vals[key]
		if !ok {
			return nil
		}
		n, ok := v.(json.Number)
		if !ok || len(n) > 40 {
			failf("%s/%s is not a number", path, key)
		}
		if _, exp, has := strings.Cut(strings.ToLower(n.String()), "e"); has && len(strings.TrimLeft(exp, "+-0")) > 2 {
			failf("%s/%s is %s, too large or too small", path, key, n)
		}
		r, ok := new(big.Rat).SetString(n.String())
		if !ok {
			failf("%s/%s is not a number", path, key)
		}
		return r
	}
	w.low, w.high = read("minimum"), read("maximum")
	if x := read("exclusiveMinimum"); x != nil && (w.low == nil || x.Cmp(w.low) >= 0) {
		w.low, w.openLow = x, true
	}
	if x := read("exclusiveMaximum"); x != nil && (w.high == nil || x.Cmp(w.high) <= 0) {
		w.high, w.openHigh = x, true
	}
	if whole {
		w.decimals = 0
	}
	if m := read("multipleOf"); m != nil {
		switch k := decimalsOf(m); {
		case m.Sign() <= 0:
			failf("%s/multipleOf is %s; want a number above 0", path, m.RatString())
		case k >= 0:
			w.decimals = min(w.decimals, k)
		case m.IsInt():
			w.every = m.Num()
		}
	}
	return w
}

// decimalsOf returns k for a multipleOf of 10^-k, -1 for another.
func decimalsOf(m *big.Rat) int {
	unit := new(big.Rat).SetInt64(1)
	for k := 0; k <= maxDecimals; k++ {
		if m.Cmp(unit) == 0 {
			return k
		}
		unit.Quo(unit, new(big.Rat).SetInt64(10))
	}
	return -1
}

// Bounds of multiples: of those that are listed one by one, and of what the
// digits of a number are followed by.
const (
	maxMultiples = 20_000
	maxModulus   = 2000
)

// multiples is the whole numbers that w.every divides: all of them between two
// limits, or with their digits' remainder followed where a limit is absent.
func (b *schemaBuilder) multiples(w bounds, path string) expr {
	step, window := new(big.Rat).SetInt(w.every), new(big.Rat).SetInt(new(big.Int).Mul(w.every, big.NewInt(maxMultiples-1)))
	switch far := w; { // with one limit other than 0, those that are next to it
	case far.low != nil && far.high == nil && far.low.Sign() != 0:
		w.high = new(big.Rat).Add(far.low, window)
	case far.high != nil && far.low == nil && far.high.Sign() != 0:
		w.low = new(big.Rat).Sub(far.high, window)
	}
	if w.low != nil && w.high != nil {
		from, to := ceil(new(big.Rat).Quo(w.low, step), w.openLow), ceil(new(big.Rat).Neg(new(big.Rat).Quo(w.high, step)), w.openHigh)
		to.Neg(to)
		number := new(big.Int).Sub(to, from)
		switch {
		case number.Sign() < 0:
			failf("%s: no multiple lies between the limits", path)
		case number.Cmp(big.NewInt(maxMultiples)) <= 0:
			var alts altExpr
			for k := new(big.Int).Set(from); k.Cmp(to) <= 0; k.Add(k, big.NewInt(1)) {
				text := new(big.Int).Mul(k, w.every).String()
				b.p.spend(len(text))
				alts = append(alts, bytesExpr(text))
			}
			return alts
		}
	}
	if !w.every.IsInt64() || w.every.Int64() > maxModulus {
		failf("%s/multipleOf is %s; of numbers above %d only multiples between two near limits are supported", path, w.every, maxModulus)
	}
	digits := b.remainders(int(w.every.Int64()), path)
	zero := new(big.Rat)
	sign := seqExpr{bytesExpr("-"), digits}
	switch {
	case w.low == nil && w.high == nil:
		return altExpr{bytesExpr("0"), digits, sign}
	case w.high == nil && w.low.Cmp(zero) == 0:
		if w.openLow {
			return digits
		}
		return altExpr{bytesExpr("0"), digits}
	case w.low == nil && w.high.Cmp(zero) == 0:
		if w.openHigh {
			return sign
		}
		return altExpr{bytesExpr("0"), sign}
	}
	failf("%s/multipleOf beside these limits is not supported; give a minimum and a maximum with at most %d multiples between them", path, maxMultiples)
	return nil
}

// remainders is the digits of positive multiples of n: node 0 is the
// beginning, node 1+r follows digits whose number leaves r.
func (b *schemaBuilder) remainders(n int, path string) expr {
	return b.rule("multiples of "+strconv.Itoa(n), func() expr {
		g := make(graphExpr, n+1)
		for i := range g {
			at, first := 0, byte('0')
			if i == 0 {
				first = '1'
			} else {
				at = i - 1
				g[i].final = at == 0
			}
			for c := first; c <= '9'; c++ {
				b.p.spend(1)
				g[i].edges = append(g[i].edges, graphEdge{bytesExpr(string(c)), 1 + (at*10+int(c-'0'))%n})
			}
		}
		return g
	})
}

// scaled is the numbers within the limits that have k digits behind the
// point: whole numbers of 10^-k.
func (b *schemaBuilder) scaled(w bounds, k int) expr {
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(k)), nil))
	low := ceil(new(big.Rat).Mul(w.low, scale), w.openLow)
	high := ceil(new(big.Rat).Neg(new(big.Rat).Mul(w.high, scale)), w.openHigh)
	high.Neg(high)
	if low.Cmp(high) > 0 {
		return nil
	}
	zero, one := big.NewInt(0), big.NewInt(1)
	var alts altExpr
	if high.Sign() >= 0 {
		from := low
		if from.Sign() < 0 {
			from = zero
		}
		alts = append(alts, b.between(from, high, k))
	}
	if low.Sign() < 0 {
		from, to := new(big.Int).Neg(high), new(big.Int).Neg(low)
		if from.Sign() <= 0 {
			from = one
		}
		alts = append(alts, seqExpr{bytesExpr("-"), b.between(from, to, k)})
	}
	return alts
}

// ceil returns the least integer that is not below r, or above r if open.
func ceil(r *big.Rat, open bool) *big.Int {
	q, m := new(big.Int), new(big.Int)
	q.DivMod(r.Num(), r.Denom(), m)
	if m.Sign() != 0 || open {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// between is the numbers from low to high, neither negative, with the point
// before the last k digits.
func (b *schemaBuilder) between(low, high *big.Int, k int) expr {
	digits := func(n *big.Int, width int) string {
		s := n.String()
		return strings.Repeat("0", max(width-len(s), 0)) + s
	}
	var alts altExpr
	for width := k + 1; width <= max(len(high.String()), k+1); width++ {
		from := digits(low, width)
		to := digits(high, width)
		if len(from) > width {
			continue
		}
		if width > k+1 && from[0] == '0' {
			from = "1" + strings.Repeat("0", width-1) // no zero leads
		}
		if len(to) > width {
			to = strings.Repeat("9", width)
		}
		if from <= to {
			alts = append(alts, b.digitRange(from, to, width-k))
		}
	}
	return alts
}

// digitRange is the digits from low to high, which are equally long, with a
// point before digit number point.
func (b *schemaBuilder) digitRange(low, high string, point int) expr {
	b.p.spend(1)
	if low == "" {
		return seqExpr{}
	}
	var dot expr = seqExpr{}
	if point == 0 {
		dot = bytesExpr(".")
	}
	rest := func(lo, hi string) expr { return b.digitRange(lo, hi, point-1) }
	nines, zeros := strings.Repeat("9", len(low)-1), strings.Repeat("0", len(low)-1)
	one := func(c byte, lo, hi string) expr { return seqExpr{dot, bytesExpr(string(c)), rest(lo, hi)} }
	if low[0] == high[0] {
		return one(low[0], low[1:], high[1:])
	}
	from, to := low[0], high[0]
	var alts altExpr
	if low[1:] != zeros {
		alts = append(alts, one(from, low[1:], nines))
		from++
	}
	if high[1:] != nines {
		alts = append(alts, one(to, zeros, high[1:]))
		to--
	}
	if from <= to {
		alts = append(alts, seqExpr{dot, setExpr(byteRange(from, to)), rest(zeros, nines)})
	}
	return alts
}
