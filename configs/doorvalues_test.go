package configs

import "testing"

// What would mean something else than it says is refused.
func TestDoorRefuses(t *testing.T) {
	refuse(t, "door {\n  queue {\n    max_requests = 0\n  }\n}\n", "test.hcl:3:", "max_requests is 0", "from 1")
	refuse(t, "door {\n  queue {\n    max_wait = \"0s\"\n  }\n}\n", "test.hcl:3:", "max_wait")
	refuse(t, "door {\n  trusted_proxies = [\"10.0.0.0/8\", \"balancer\"]\n}\n", "test.hcl:2:", `"balancer"`, "10.0.0.0/8")
	refuse(t, "door {\n  trusted_proxies = [\"10.1.0.0/8\"]\n}\n", "test.hcl:2:", `"10.1.0.0/8"`, `the range is "10.0.0.0/8"`)
	refuse(t, "pool \"a\" {\n  driver = \"static\"\n  scrape {\n    names = { kv_usage = \"x\" }\n  }\n  worker \"1\" {\n    url = \"http://a:1\"\n  }\n}\n", "names", `"kv_usage"`, "kv_cache_usage")
}
