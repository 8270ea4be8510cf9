package bench

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// series is a set of points of one plot. Points of a line are joined.
type series struct {
	name string
	x, y []float64
	line bool
	step bool // joined by steps, as a count changes
}

// plot is one chart, drawn as SVG without a script, so that the page is one file
// that shows itself.
type plot struct {
	title, xName, yName string
	logX, logY          bool
	series              []series
	guides              []guideLine // horizontal lines, e.g. a goal
	diagonal            bool        // y = x
}

type guideLine struct {
	name string
	y    float64
}

const plotWidth, plotHeight, left, right, top, bottom = 640, 300, 62, 14, 30, 42

// axis maps a range of values to a range of pixels.
type axis struct {
	low, high  float64
	from, to   float64
	logarithms bool
}

func newAxis(low, high, from, to float64, logarithms bool) axis {
	if logarithms {
		low = max(low, 1e-3)
		high = max(high, low*1.01)
		return axis{math.Log10(low), math.Log10(high), from, to, true}
	}
	low = min(low, 0)
	if high <= low {
		high = low + 1
	}
	return axis{low, high, from, to, false}
}

func (a axis) at(v float64) float64 {
	if a.logarithms {
		v = math.Log10(max(v, 1e-3))
	}
	return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from)
}

// ticks are about five round values of the axis.
func (a axis) ticks() []float64 {
	var t []float64
	if a.logarithms {
		for e := math.Floor(a.low); e <= math.Ceil(a.high); e++ {
			for _, m := range []float64{1, 2, 5} {
				if v := m * math.Pow(10, e); math.Log10(v) >= a.low-1e-9 && math.Log10(v) <= a.high+1e-9 {
					t = append(t, v)
				}
			}
		}
		return t
	}
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (a.high-a.low)/(step*m) <= 6 {
			step *= m
			break
		}
	}
	for v := math.Ceil(a.low/step) * step; v <= a.high+step/1e6; v += step {
		t = append(t, v)
	}
	return t
}

// svg draws the plot; a plot without points gives nothing.
func (p plot) svg() string {
	minX, maxX, minY, maxY := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, s := range p.series {
		for i := range s.x {
			minX, maxX = min(minX, s.x[i]), max(maxX, s.x[i])
			minY, maxY = min(minY, s.y[i]), max(maxY, s.y[i])
		}
	}
	if math.IsInf(minX, 1) {
		return ""
	}
	for _, l := range p.guides {
		maxY = max(maxY, l.y)
	}
	if p.diagonal {
		maxY = max(maxY, maxX)
	}
	x := newAxis(minX, maxX, left, plotWidth-right, p.logX)
	y := newAxis(minY, maxY*1.05, plotHeight-bottom, top, p.logY)
	var b strings.Builder
	fmt.Fprintf(&b, `<figure><svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, plotWidth, plotHeight, html.EscapeString(p.title))
	p.frame(&b, x, y)
	for i, s := range p.series {
		s.draw(&b, x, y, i, len(p.series) > 1)
	}
	b.WriteString("</svg></figure>")
	return b.String()
}

func (p plot) frame(b *strings.Builder, x, y axis) {
	fmt.Fprintf(b, `<text class="t" x="%d" y="16">%s</text>`, left, html.EscapeString(p.title))
	for _, v := range x.ticks() {
		fmt.Fprintf(b, `<path class="g" d="M%.1f %dV%d"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`, x.at(v), top, plotHeight-bottom, x.at(v), plotHeight-bottom+16, tick(v))
	}
	for _, v := range y.ticks() {
		fmt.Fprintf(b, `<path class="g" d="M%d %.1fH%d"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`, left, y.at(v), plotWidth-right, left-6, y.at(v)+4, tick(v))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`, (left+plotWidth-right)/2, plotHeight-8, html.EscapeString(p.xName))
	fmt.Fprintf(b, `<text transform="translate(14 %d) rotate(-90)" text-anchor="middle">%s</text>`, (top+plotHeight-bottom)/2, html.EscapeString(p.yName))
	for _, l := range p.guides {
		fmt.Fprintf(b, `<path class="l" d="M%d %.1fH%d"/><text class="l" x="%d" y="%.1f" text-anchor="end">%s</text>`, left, y.at(l.y), plotWidth-right, plotWidth-right-2, y.at(l.y)-3, html.EscapeString(l.name))
	}
	if p.diagonal {
		end := min(x.high, y.high)
		fmt.Fprintf(b, `<path class="l" d="M%.1f %.1fL%.1f %.1f"/>`, x.at(0), y.at(0), x.at(end), y.at(end))
	}
}

func (s series) draw(b *strings.Builder, x, y axis, colour int, named bool) {
	if s.line || s.step {
		fmt.Fprintf(b, `<path class="s c%d" d="`, colour%6)
		for i := range s.x {
			switch {
			case i == 0:
				fmt.Fprintf(b, "M%.1f %.1f", x.at(s.x[i]), y.at(s.y[i]))
			case s.step:
				fmt.Fprintf(b, "H%.1fV%.1f", x.at(s.x[i]), y.at(s.y[i]))
			default:
				fmt.Fprintf(b, "L%.1f %.1f", x.at(s.x[i]), y.at(s.y[i]))
			}
		}
		b.WriteString(`"/>`)
	}
	if !s.step && len(s.x) <= 2000 {
		for i := range s.x {
			fmt.Fprintf(b, `<circle class="p c%d" cx="%.1f" cy="%.1f" r="2.2"><title>%s %s, %s</title></circle>`, colour%6, x.at(s.x[i]), y.at(s.y[i]), html.EscapeString(s.name), tick(s.x[i]), tick(s.y[i]))
		}
	}
	if named {
		at := top + 12 + 14*colour
		fmt.Fprintf(b, `<path class="s c%d" d="M%d %dh14"/><text x="%d" y="%d">%s</text>`, colour%6, left+8, at-4, left+26, at, html.EscapeString(s.name))
	}
}

func tick(v float64) string {
	if a := math.Abs(v); a >= 10000 {
		return fmt.Sprintf("%.0fk", v/1000)
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", v), "0"), ".")
}
