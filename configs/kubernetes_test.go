package configs

import "testing"

// TestPods takes pools of pods, and refuses what they cannot have with line and field.
func TestPods(t *testing.T) {
	pool := func(attributes string) string {
		return "pool \"a\" {\n  driver = \"kubernetes\"\n  " + attributes + "\n}\n"
	}
	for _, selector := range []string{"app=vllm", "app==vllm, tier!=test", "example.org/app in (a, b),!gone,there", "a notin (x)", "a="} {
		p := parse(t, pool(`selector = "`+selector+"\"\n  port = 8000")).Pools[0]
		if p.Pods != (Pods{Selector: selector, Port: 8000}) || len(p.Workers) != 0 || !p.OfPods() {
			t.Errorf("%s: got %+v", selector, p)
		}
	}
	if p := parse(t, pool("inference_pool = \"chat\"\n  namespace = \"models\"")).Pools[0]; p.Pods != (Pods{InferencePool: "chat", Namespace: "models"}) {
		t.Errorf("got %+v", p)
	}
	f := func(attributes string, want ...string) {
		t.Helper()
		refuse(t, pool(attributes), want...)
	}
	f("", "test.hcl:1:", `pool "a"`, "a selector such as", "inference_pool")
	f(`selector = "app=vllm"`, "test.hcl:1:", `pool "a"`, "port says where")
	f(`port = 8000`, "a selector such as")
	f("selector = \"app=vllm\"\n  inference_pool = \"chat\"", "test.hcl:3:", "selector and inference_pool", "one of them")
	f("inference_pool = \"chat\"\n  port = 8000", "test.hcl:4:", "port: the InferencePool names the ports")
	f("port = 8000\n  selector = \"app in vllm\"", "test.hcl:4:", `selector is "app in vllm"`)
	f("port = 8000\n  selector = \"\"", `selector is ""`)
	f("port = 8000\n  selector = \"a=b,,c\"", `selector is "a=b,,c"`)
	f("port = 70000\n  selector = \"a=b\"", "test.hcl:3:", "port", "65535")
	f(`inference_pool = "Chat"`, "test.hcl:3:", `inference_pool is "Chat"`)
	f("inference_pool = \"chat\"\n  namespace = \"a.b\"", "test.hcl:4:", `namespace is "a.b"`)
	for _, no := range []string{"engine {\n    model = \"m\"\n  }", "workers = 2", "canary {\n  }", "devices = \"cpu\"", "gpus_per_worker = 2"} {
		f("inference_pool = \"chat\"\n  "+no, "test.hcl:4:", "the pods of a kubernetes pool are run by somebody else")
	}
	for _, no := range []string{`strategy = "surge"`, `stop_grace = "1s"`, "after_requests = 1", "after_tokens = 1", "memory_growth = 0.1", "slowdown = 0.1"} {
		f("inference_pool = \"chat\"\n  rotation {\n    "+no+"\n  }", "test.hcl:5:", "pods are rotated by eviction")
	}
	f("inference_pool = \"chat\"\n  rotation {\n    schedule = \"often\"\n  }", "test.hcl:5:", "schedule")
	p := parse(t, pool("inference_pool = \"chat\"\n  rotation {\n    schedule = \"0 3 * * *\"\n  }")).Pools[0]
	if r := p.Rotation; !p.Pods.Rotates || r.MinReady != -1 || r.MemoryGrowth != 0 || r.Slowdown != 0 {
		t.Errorf("got %+v %+v", p.Pods, r)
	}
	f("inference_pool = \"chat\"\n  worker \"w\" {\n    url = \"http://a\"\n  }", "test.hcl:4:", `worker "w"`, "leave the block out")
	f("inference_pool = \"chat\"\n  image = \"a:1\"", "test.hcl:4:", "image is for the docker and swarm drivers")
	for _, name := range []string{`selector = "a=b"`, `port = 1`, `namespace = "n"`, `inference_pool = "p"`} {
		refuse(t, "pool \"a\" {\n  "+name+"\n}\n", "test.hcl:2:", "is for the kubernetes driver; this pool's driver is process")
	}
}
