package supervisor

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/keyfile"
	"roundhouse/configs"
)

// TestKeys: a key that is made reaches every door, makes an event without what opens it,
// and stands in the state folder for the next supervisor, until it is revoked.
func TestKeys(t *testing.T) {
	b := newBench(t, 1, nil)
	b.cfg.Door.Keys = []configs.Key{{Name: "theirs", SHA256: []string{strings.Repeat("ab", 32)}, Models: []string{"*"}, Priority: "normal", Weight: 1}}
	b.run()
	status, text := b.post("/api/keys", `{"name":"team-a","day_budget":{"tokens":1000}}`)
	var added control.KeyAdded
	if err := json.Unmarshal([]byte(text), &added); status != 201 || err != nil || added.Doors != 1 || len(added.Waiting) != 0 || added.First {
		t.Fatalf("%d %s %v", status, text, err)
	}
	if event := b.events("key"); !strings.Contains(event, `\"team-a\" is added`) || strings.Contains(event, added.Key) || strings.Contains(event, added.SHA256) {
		t.Errorf("the event says %s", event)
	}
	kept, err := os.ReadFile(filepath.Join(b.cfg.StateDir, keyfile.Name))
	if err != nil || strings.Contains(string(kept), added.Key) || !strings.Contains(string(kept), added.SHA256) {
		t.Errorf("%v; the folder keeps %s", err, kept)
	}
	again := keyfile.Open(b.cfg.StateDir)
	if list := again.List(); len(list) != 1 || list[0].Day.Tokens != 1000 || !strings.HasPrefix(list[0].By, "operator") {
		t.Errorf("another supervisor would have %+v", list)
	}
	remove := func(name string) (int, string) {
		req, err := http.NewRequest("DELETE", b.api+"/api/keys/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	if status, text := remove("theirs"); status != 409 || !strings.Contains(text, "configuration's") {
		t.Errorf("the configuration's key: %d %s", status, text)
	}
	if status, text := remove("team-a"); status != 200 || !strings.Contains(text, `"doors":1`) {
		t.Errorf("%d %s", status, text)
	}
	if event := b.events("key"); !strings.Contains(event, `\"team-a\" is revoked`) {
		t.Errorf("the events say %s", event)
	}
}
