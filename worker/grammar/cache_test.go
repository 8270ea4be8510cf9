package grammar

import (
	"errors"
	"sync"
	"testing"
)

func TestCacheKeepsTheLastUsed(t *testing.T) {
	c := NewCache(demoVocab(t), 2)
	get := func(re string) *Grammar {
		t.Helper()
		g, err := c.Get(Spec{Regex: re})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	a, b := get("a"), get("b")
	if get("a") != a {
		t.Error("a was compiled twice")
	}
	get("c") // b goes: a was used since
	if get("a") != a {
		t.Error("a went, which was used last")
	}
	if get("b") == b {
		t.Error("three grammars are kept; two are allowed")
	}
	if _, err := c.Get(Spec{Regex: "("}); !errors.Is(err, ErrSpec) {
		t.Errorf("error is %v", err)
	}
	var wg sync.WaitGroup
	all := make([]*Grammar, 8)
	for i := range all {
		wg.Go(func() { all[i], _ = c.Get(Spec{JSONObject: true}) })
	}
	wg.Wait()
	for _, g := range all {
		if g == nil || g != all[0] {
			t.Error("the same specification gave different grammars")
		}
	}
}
