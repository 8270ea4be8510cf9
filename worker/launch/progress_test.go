package launch

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// On a terminal a load draws a bar over itself; in a log it is a line every two
// seconds, and none where it is quick.
func TestProgress(t *testing.T) {
	at := time.Unix(0, 0)
	now := func() time.Time { return at }
	run := func(bar *bytes.Buffer, log *bytes.Buffer, step time.Duration) {
		var p *progress
		l := slog.New(slog.NewTextHandler(log, nil))
		if bar != nil {
			p = newProgress(bar, l, now)
		} else {
			p = newProgress(nil, l, now)
		}
		for i := int64(1); i <= 10; i++ {
			at = at.Add(step)
			p.step(i<<30, 10<<30)
		}
	}
	var bar, log bytes.Buffer
	run(&bar, &log, time.Second)
	if text := bar.String(); strings.Count(text, "\r") != 10 || !strings.Contains(text, "[===============               ]  50 %  5.00 GiB of 10.00 GiB") ||
		!strings.HasSuffix(text, "\n") || strings.Count(text, "\n") != 1 || log.Len() > 0 {
		t.Errorf("the bar is %q, the log %q", text, log.String())
	}
	run(nil, &log, time.Second)
	if text := log.String(); strings.Count(text, "\n") != 5 || !strings.Contains(text, `msg="loading weights" percent=40 read="4.00 GiB" of="10.00 GiB" left=6s`) {
		t.Errorf("the log is:\n%s", text)
	}
	log.Reset()
	run(nil, &log, 10*time.Millisecond)
	if log.Len() > 0 {
		t.Errorf("a quick load wrote:\n%s", log.String())
	}
}
