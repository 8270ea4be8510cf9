package template

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats a time as Python's strftime does in the C locale.
func strftime(t time.Time, format string) string {
	var out strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			out.WriteByte(format[i])
			continue
		}
		i++
		pad := true
		if format[i] == '-' && i+1 < len(format) {
			pad = false
			i++
		}
		out.WriteString(directive(t, format[i], pad))
	}
	return out.String()
}

func directive(t time.Time, c byte, pad bool) string {
	num := func(n, width int) string {
		if !pad {
			return fmt.Sprint(n)
		}
		return fmt.Sprintf("%0*d", width, n)
	}
	hour12 := (t.Hour()+11)%12 + 1
	switch c {
	case 'Y':
		return num(t.Year(), 4)
	case 'y':
		return num(t.Year()%100, 2)
	case 'm':
		return num(int(t.Month()), 2)
	case 'd':
		return num(t.Day(), 2)
	case 'e':
		return fmt.Sprintf("%2d", t.Day())
	case 'H':
		return num(t.Hour(), 2)
	case 'I':
		return num(hour12, 2)
	case 'M':
		return num(t.Minute(), 2)
	case 'S':
		return num(t.Second(), 2)
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000)
	case 'j':
		return num(t.YearDay(), 3)
	case 'w':
		return fmt.Sprint(int(t.Weekday()))
	case 'u':
		return fmt.Sprint((int(t.Weekday())+6)%7 + 1)
	case 'U':
		return num((t.YearDay()+6-int(t.Weekday()))/7, 2)
	case 'W':
		return num((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2)
	case 'V':
		_, week := t.ISOWeek()
		return num(week, 2)
	case 'G':
		year, _ := t.ISOWeek()
		return num(year, 4)
	case 's':
		return fmt.Sprint(t.Unix())
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case '%':
		return "%"
	case 'Z', 'z':
		return "" // the time that transformers prints has no zone
	}
	layouts := map[byte]string{
		'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'p': "PM", 'c': "Mon Jan _2 15:04:05 2006",
		'x': "01/02/06", 'X': "15:04:05", 'D': "01/02/06", 'T': "15:04:05", 'R': "15:04", 'F': "2006-01-02", 'r': "03:04:05 PM",
	}
	if layout, ok := layouts[c]; ok {
		return t.Format(layout)
	}
	return "%" + string(c)
}
