package configs

import "testing"

// What would mean something else than it says is refused.
func TestDoorRefuses(t *testing.T) {
	refuse(t, "door {\n  queue {\n    max_requests = 0\n  }\n}\n", "test.hcl:3:", "max_requests is 0", "from 1")
	refuse(t, "door {\n  queue {\n    max_wait = \"0s\"\n  }\n}\n", "test.hcl:3:", "max_wait")
	refuse(t, "pool \"a\" {\n  driver = \"static\"\n  scrape {\n    names = { kv_usage = \"x\" }\n  }\n  worker \"1\" {\n    url = \"http://a:1\"\n  }\n}\n", "names", `"kv_usage"`, "kv_cache_usage")
}
