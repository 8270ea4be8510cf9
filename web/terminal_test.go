//go:build browser && screenshots

package web_test

import (
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// The terminal that `roundhouse top` is pictured on: cells, and their size in pixels.
const (
	columns, lines = 112, 12
	wide, high     = 8.4, 18.0
)

// terminal is a command on a terminal of its own, and the frame that it drew last.
type terminal struct {
	mu   sync.Mutex
	text string
	done chan struct{}
}

// onTerminal runs a command until the test ends.
func onTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: lines, Col: columns}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	screen.Close()
	x := &terminal{done: make(chan struct{})}
	go x.read(person)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait()
		<-x.done
		person.Close()
	})
	return x
}

func (x *terminal) read(from *os.File) {
	defer close(x.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return // the command has ended
		}
		x.mu.Lock()
		x.text += string(buf[:n])
		if at := strings.LastIndex(x.text, "\x1b[H"); at > 0 { // the frame before is whole
			if before := strings.LastIndex(x.text[:at], "\x1b[H"); before > 0 {
				x.text = x.text[before:]
			}
		}
		x.mu.Unlock()
	}
}

// frame is the last whole frame, a line each.
func (x *terminal) frame() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	whole, _, _ := strings.Cut(strings.TrimPrefix(x.text, "\x1b[H"), "\x1b[H")
	return strings.Split(strings.TrimSuffix(whole, "\x1b[J"), "\r\n")
}

// The colours of a dark terminal, by the numbers that `top` paints with.
var inks = map[string]string{"31": "#ff8f86", "32": "#56cf8f", "33": "#f0b73e", "36": "#7fd3e6"}

var escape = regexp.MustCompile(`\x1b\[([0-9;?]*)([A-Za-z])`)

// drawing is a frame as SVG: every cell at its place, whichever font there is.
func drawing(frame []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13.5">`+"\n",
		columns*wide+32, lines*high+28)
	b.WriteString(`<rect width="100%" height="100%" rx="10" fill="#0d1117"/>` + "\n")
	for y, line := range frame {
		ink, at := "#e6ebf2", 0
		draw := func(text string) {
			n := len([]rune(text))
			if strings.TrimSpace(text) != "" {
				fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" textLength="%.1f" fill="%s" xml:space="preserve">`, 16+float64(at)*wide, 28+float64(y)*high, float64(n)*wide, ink)
				_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes all
				b.WriteString("</text>\n")
			}
			at += n
		}
		rest := strings.TrimRight(line, " ")
		for {
			m := escape.FindStringSubmatchIndex(rest)
			if m == nil {
				draw(rest)
				break
			}
			draw(rest[:m[0]])
			if rest[m[4]:m[5]] == "m" {
				if ink = inks[rest[m[2]:m[3]]]; ink == "" {
					ink = "#e6ebf2"
				}
			}
			rest = rest[m[1]:]
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// draw keeps the picture of a terminal.
func (x *terminal) draw(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(*pictures, name+".svg"), []byte(drawing(x.frame())), 0o644); err != nil {
		t.Fatal(err)
	}
}
