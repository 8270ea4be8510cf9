package balancer

import (
	"reflect"
	"testing"

	"roundhouse/configs"
)

// A worker set that leaves the door's block out gets the limits that a
// configuration file without one has. Zero keeps its meaning only if it turns
// something off.
func TestDefaultsOfASet(t *testing.T) {
	want := configs.DefaultDoor()
	want.Listen, want.Policy = "", "" // the listener is given, and a pool names its policy
	want.Retry, want.Resume, want.SlowStart, want.Batches.Concurrency, want.HTTP2 = configs.Retry{}, configs.Resume{}, 0, 0, false
	if got := filled(configs.Door{}); !reflect.DeepEqual(got, want) {
		t.Errorf("an empty door block is filled to\n%+v, want\n%+v", got, want)
	}
	set := configs.DefaultDoor()
	set.Limits.Body, set.Queue.MaxRequests = 1, 7
	if got := filled(set); !reflect.DeepEqual(got, set) {
		t.Errorf("a whole door block became\n%+v, want it untouched:\n%+v", got, set)
	}
}
