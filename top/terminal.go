package top

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Message is one of the stream's.
type Message struct {
	Name string
	Data []byte
	Err  error // the stream has ended, for this reason; another follows
}

// Look asks for what a view shows beside the state.
type Look func(context.Context, Want) Seen

// Do does what was decided, and says what it came to.
type Do func(context.Context, Act) string

const (
	enter = "\x1b[?1049h\x1b[?25l"
	leave = "\x1b[?25h\x1b[?1049l"
)

// Run shows the stream on a terminal until the end is asked for. The terminal is as it
// was before, however it ends.
func Run(ctx context.Context, in, out *os.File, s *Screen, messages <-chan Message, look Look, do Do) (err error) {
	was, err := raw(in)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer stop()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	defer func() {
		fmt.Fprint(out, leave)
		_ = unix.IoctlSetTermios(int(in.Fd()), unix.TCSETS, was) // the terminal may be gone
	}()
	fmt.Fprint(out, enter)
	keys := read(ctx, in)
	said, seen := make(chan string, 8), make(chan Seen, 8)
	var wanted Want
	var asked time.Time
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s.measure(out)
		s.Now = time.Now()
		if w := s.Want(); w != wanted || w != (Want{}) && s.Now.Sub(asked) > again {
			wanted, asked = w, s.Now
			go fetch(ctx, look, w, seen)
		}
		if _, err := fmt.Fprint(out, s.page()); err != nil {
			return nil // nobody looks any more
		}
		select {
		case <-ctx.Done():
			return nil
		case m, open := <-messages:
			if !open {
				return nil
			}
			s.takeAll(m, messages)
		case got := <-seen:
			s.Show(got)
		case text := <-said:
			s.Say(text)
		case key, open := <-keys:
			if !open {
				return nil
			}
			act, quit := s.Press(key)
			if quit {
				return nil
			}
			if act != nil {
				s.Say(act.Verb + " …")
				go func() {
					select {
					case said <- do(ctx, *act):
					case <-ctx.Done():
					}
				}()
			}
		case <-resized:
		case <-tick.C:
		}
	}
}

// again is how old what a view shows may become.
const again = 2 * time.Second

// fetch asks for what a view shows, unless it wants nothing.
func fetch(ctx context.Context, look Look, w Want, to chan<- Seen) {
	if w == (Want{}) {
		return
	}
	got := look(ctx, w)
	got.Want = w
	select {
	case to <- got:
	case <-ctx.Done():
	}
}

// takeAll takes a message and those behind it: what has come is drawn once.
func (s *Screen) takeAll(m Message, messages <-chan Message) {
	for s.take(m); ; s.take(m) {
		select {
		case m = <-messages:
		default:
			return
		}
	}
}

// take takes a message.
func (s *Screen) take(m Message) {
	h := s.House
	if s.going != nil {
		h = s.going
	}
	err := m.Err
	if err == nil {
		err = h.Take(m.Name, m.Data, time.Now())
	}
	if err != nil {
		h.Gone = err.Error()
	}
}

// page is a frame as it is written: over the last one, line by line.
func (s *Screen) page() string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range s.Frame() {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	return b.String()
}

// measure looks how large the terminal is.
func (s *Screen) measure(out *os.File) {
	s.Wide, s.High = 80, 24
	if size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
		s.Wide, s.High = int(size.Col), int(size.Row)
	}
}

// raw has the terminal hand over each key as it is pressed.
func raw(in *os.File) (was *unix.Termios, err error) {
	was, err = unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("this is no terminal (%w): -1 prints once", err)
	}
	t := *was
	t.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Iflag &^= unix.IXON | unix.ICRNL | unix.BRKINT | unix.INPCK | unix.ISTRIP
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return was, unix.IoctlSetTermios(int(in.Fd()), unix.TCSETS, &t)
}

// read reads keys until the terminal is gone. Its last read may outlast ctx: a terminal
// gives no other way.
func read(ctx context.Context, in *os.File) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		buf, left := make([]byte, 256), []byte(nil)
		for {
			n, err := in.Read(buf)
			if err != nil {
				return
			}
			var keys []string
			keys, left = keysOf(append(left, buf[:n]...))
			for _, k := range keys {
				select {
				case out <- k:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}
