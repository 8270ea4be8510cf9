package measure

import (
	"math"
	"strings"
	"testing"
	"time"

	"roundhouse/kernels/cpu"
	"roundhouse/kernels/ref"
)

// tiny is a measurement that says nothing about speed.
var tiny = Options{Size: 128, Bytes: 1 << 16, Rows: 4, Time: time.Microsecond}

func TestEveryKernel(t *testing.T) {
	b, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c, err := Copy(b, tiny)
	if err != nil || c.Rate() <= 0 {
		t.Errorf("copy: %+v, %v", c, err)
	}
	var names []string
	err = Kernels(b, tiny, func(f Figures) {
		names = append(names, f.Name)
		if f.Seconds <= 0 || f.Bytes <= 0 || f.Flops <= 0 {
			t.Errorf("%+v", f)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var want string
	for _, rows := range []string{"1", "4"} {
		for _, m := range []string{"float32", "bfloat16", "float16", "int8", "sym_int4", "fp8", "q4_0", "mxfp4", "gptq", "gptq in act-order", "awq"} {
			want += "linear " + m + ", " + rows + " rows; "
		}
	}
	want += "attention, 1 rows of 256; attention, 4 rows of 256; norm, 4 rows; layer norm, 4 rows; activate, 4 rows; choose of 4736 tokens; " +
		"convolution bfloat16, 8 frames to 4; patches bfloat16, 4 of 14 by 14; depthwise bfloat16, 4 rows"
	if got := strings.Join(names, "; "); got != want {
		t.Errorf("measured\n%s\nwant\n%s", got, want)
	}
}

func TestKinds(t *testing.T) {
	o, n := tiny, 0
	o.Kinds = []Kind{Attention}
	if err := Kernels(ref.New(), o, func(f Figures) { n++ }); err != nil || n != 2 {
		t.Errorf("%d kernels, %v; want two attentions", n, err)
	}
	var names []string
	o.Kinds, o.Apart = []Kind{OneRow}, true
	if err := Kernels(ref.New(), o, func(f Figures) { names = append(names, f.Name) }); err != nil || len(names) != 7 || !strings.Contains(names[6], "mxfp4") {
		t.Errorf("%v, %v; want each kernel of a linear once", names, err)
	}
	o.Kinds = []Kind{"dance"}
	if err := Kernels(ref.New(), o, nil); err == nil || !strings.Contains(err.Error(), `"dance"`) {
		t.Errorf("got %v", err)
	}
}

func TestTotal(t *testing.T) {
	if got := Total([]Figures{{Seconds: 1}, {Seconds: 4}}); math.Abs(got-2) > 1e-12 {
		t.Errorf("got %v; want the geometric mean 2", got)
	}
	if !math.IsInf(Total(nil), 1) {
		t.Error("no figures have a total")
	}
}
