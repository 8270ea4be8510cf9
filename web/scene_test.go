package web_test

import (
	"fmt"
	"math"
	"time"

	"roundhouse/web"
)

type obj = map[string]any

// message is one of the stream.
type message struct {
	kind string
	data obj
}

// scene is a state of a whole installation.
type scene struct {
	name      string
	level     string
	sentence  string
	findings  []obj
	door      string // its state
	alone     bool   // a door without a supervisor
	rights    string
	pools     []obj
	workers   []obj
	rotations []obj
	schedules []obj
	events    []obj
	requests  []obj
	past      []obj // requests that have ended
	lines     []string
	ailments  []obj // what the diagnosis finds
	quiet     bool  // nobody asked
}

func at(ago time.Duration) string { return time.Now().Add(-ago).UTC().Format(time.RFC3339Nano) }

// evil is text that must stay text, wherever it comes from.
const evil = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

func worker(pool, name, state string, usage float64, in int) obj {
	const capacity = 104832
	return obj{
		"id": pool + "/" + name, "pool": pool, "name": name, "driver": "process", "state": state, "reason": nil, "since": at(83 * time.Minute),
		"url": "http://127.0.0.1:40001", "models": []string{"roundhouse-demo"}, "modalities": nil,
		"kv": obj{"capacity_tokens": capacity, "charged_tokens": int(usage * capacity), "foreign_tokens": int(usage * 0.06 * capacity), "elsewhere_tokens": 0,
			"reported_tokens": int(usage * 0.9 * capacity), "report_age_seconds": 0.2, "usage": math.Round(usage*1060) / 1000},
		"requests": obj{"in_flight": in, "running": in, "waiting": in / 8, "prefill_tokens": 310, "oldest_seconds": 12.5},
		"traffic":  obj{"served": 18234, "failed": 3, "tokens": 2310441, "ttft_seconds": 0.18, "tokens_per_second": 41.3, "prefix_hits": 0.62, "preemptions": 2},
		"device": obj{"name": "Arc Pro B60", "busy": 0.71, "memory_used_bytes": 19.2e9, "memory_total_bytes": 24e9, "power_watts": 141.0,
			"temperature_celsius": 63.0, "host_memory_bytes": 2.1e9},
		"drain": nil, "next_try": nil, "last_error": nil, "restarts": 2, "generation": 3, "started": at(83 * time.Minute), "version": "v1",
		"place": obj{"node": nil, "pid": 4711, "container": nil, "image": nil, "gpus": []string{"0000:18:00.0"}, "numa": []int{0}, "cpus": "0-17"},
	}
}

// unknown is a worker of which nothing is known that may be unknown.
func unknown(pool, name string) obj {
	w := worker(pool, name, "starting", 0, 0)
	for _, k := range []string{"reason", "url", "next_try", "last_error", "started", "version"} {
		w[k] = nil
	}
	w["models"] = []string{}
	w["kv"] = obj{"capacity_tokens": nil, "charged_tokens": 0, "foreign_tokens": 0, "reported_tokens": nil, "report_age_seconds": nil, "usage": nil}
	w["requests"] = obj{"in_flight": 0, "running": nil, "waiting": nil, "prefill_tokens": nil, "oldest_seconds": nil}
	w["traffic"] = nulls("served", "failed", "tokens", "ttft_seconds", "tokens_per_second", "prefix_hits", "preemptions")
	w["device"] = nulls("name", "busy", "memory_used_bytes", "memory_total_bytes", "power_watts", "temperature_celsius", "host_memory_bytes")
	w["place"] = obj{"node": nil, "pid": nil, "container": nil, "image": nil, "gpus": []string{}, "numa": []int{}, "cpus": nil}
	return w
}

func nulls(names ...string) obj {
	o := obj{}
	for _, n := range names {
		o[n] = nil
	}
	return o
}

func pool(name string, desired, ready int, rotation string) obj {
	r := obj{"state": rotation, "next": at(-9 * time.Hour), "last": at(15 * time.Hour), "last_result": "done"}
	if rotation != "idle" {
		r["last_result"] = nil
	}
	return obj{"name": name, "policy": "least_kv", "task": nil, "desired": desired, "ready": ready, "rotation": r}
}

func event(id int, ago time.Duration, worker, kind, who, text string) obj {
	e := obj{"id": id, "at": at(ago), "kind": kind, "who": who, "text": text, "pool": "chat"}
	if worker != "" {
		e["worker"] = worker
	}
	return e
}

func flying(n int, worker, state string) obj {
	r := obj{"id": fmt.Sprintf("req-%04d", n), "pool": "chat", "worker": worker, "model": "roundhouse-demo", "key": "team-a", "priority": "normal", "state": state,
		"since": at(time.Duration(n%40) * time.Second), "prompt_tokens": 800 + n, "generated_tokens": n * 3, "tokens_per_second": 38.5, "resumes": n % 3 / 2, "door": "d1"}
	if state == "queued" {
		r["position"], r["waits_for"], r["tokens_per_second"] = n, "room for 9 000 tokens: no worker has it", nil
	}
	return r
}

func gone(n int, worker, outcome string) obj {
	r := obj{"id": fmt.Sprintf("old-%04d", n), "pool": "chat", "worker": worker, "model": "roundhouse-demo", "route": nil, "key": "team-a", "priority": "normal",
		"path": "/v1/chat/completions", "status": 200, "outcome": outcome, "reason": nil, "began": at(time.Duration(n+9) * time.Second), "ended": at(time.Duration(n) * time.Second),
		"queue_seconds": 0.004, "ttft_seconds": 0.21, "seconds": 8.4, "prompt_tokens": 812, "cached_tokens": 640, "generated_tokens": 320, "resumes": 0, "streamed": true, "door": "d1"}
	if outcome == "refused" {
		r["status"], r["reason"], r["worker"], r["ttft_seconds"], r["generated_tokens"], r["prompt_tokens"], r["cached_tokens"] = 503, "wait", nil, nil, nil, nil, nil
	}
	return r
}

// quietScene is an installation that has just begun, and that nobody has asked.
func quietScene() scene {
	return scene{name: "quiet", level: "well", sentence: "2 of 2 workers ready, nothing waits", door: "ready", rights: "operator", quiet: true,
		pools: []obj{pool("chat", 2, 2, "idle")}, workers: []obj{worker("chat", "1", "ready", 0, 0), worker("chat", "2", "ready", 0, 0)},
		schedules: []obj{{"pool": "chat", "schedule": nil, "timezone": "UTC", "next": nil, "off": false, "off_until": nil, "last": nil, "last_result": nil, "blackout": []string{}}}}
}

// emptyScene has no pool, no worker and nothing that ever happened.
func emptyScene() scene {
	return scene{name: "empty", level: "well", sentence: "nothing is configured", door: "ready", rights: "operator", quiet: true}
}

// busyScene is a good day: traffic, and a rotation with a canary under way.
func busyScene() scene {
	s := quietScene()
	s.name, s.level, s.sentence, s.quiet = "busy", "changing", "chat is being rotated: 1 of 4 workers had its turn", false
	s.pools = []obj{pool("chat", 4, 3, "running"), pool("embed", 2, 2, "idle")}
	draining := worker("chat", "2", "draining", 0.31, 6)
	draining["reason"], draining["drain"] = "rotation: operator", obj{"deadline": at(-8 * time.Minute)}
	s.pools[0]["task"], s.pools[1]["task"] = "generate", "embed"
	s.ailments = []obj{ailment("kv-thrashing", "critical", "chat/4"), ailment("slow-worker", "warn", "chat/3")}
	s.workers = []obj{worker("chat", "1", "ready", 0.22, 9), draining, worker("chat", "3", "ready", 0.66, 22), worker("chat", "4", "ready", 0.87, 31), worker("embed", "1", "ready", 0.04, 1), unknown("embed", "2")}
	s.findings = []obj{{"code": "turn", "level": "changing", "since": at(40 * time.Second), "pool": "chat", "worker": "chat/2", "sentence": "chat/2 is drained for its turn: 6 requests left", "actions": []string{"abort", "log"}}}
	s.rotations = []obj{{"id": 7, "pool": "chat", "cause": "operator", "state": "running", "reason": nil, "done": []string{"1"}, "current": "2", "queue": []string{"3", "4"}, "waiting": nil, "canary": "1", "began": at(3 * time.Minute), "ended": nil}}
	s.schedules = []obj{
		{"pool": "chat", "schedule": "0 3 * * *", "timezone": "Europe/Berlin", "next": at(-9 * time.Hour), "off": false, "off_until": nil, "last": at(15 * time.Hour), "last_result": "done", "blackout": []string{"Mon-Fri 08:00-20:00"}},
		{"pool": "embed", "schedule": nil, "timezone": "Europe/Berlin", "next": nil, "off": false, "off_until": nil, "last": nil, "last_result": nil, "blackout": []string{}},
	}
	s.events = []obj{event(1, 90*time.Minute, "chat/1", "started", "supervisor", "pid 4711"), event(2, 3*time.Minute, "", "rotate", `operator "Ann" from 127.0.0.1`, "asked for"), event(5, 40*time.Second, "chat/2", "draining", "supervisor", "rotation: operator")}
	for i := range 14 {
		s.requests = append(s.requests, flying(i+1, fmt.Sprintf("chat/%d", i%4+1), []string{"streaming", "streaming", "sent"}[i%3]))
		s.past = append(s.past, gone(i+1, fmt.Sprintf("chat/%d", i%4+1), "ok"))
	}
	s.requests = append(s.requests, flying(1, "", "queued"), flying(2, "", "queued"))
	s.past = append(s.past, gone(20, "chat/1", "failed"), gone(21, "", "refused"), gone(22, "chat/2", "cancelled"))
	for i := range 60 {
		s.lines = append(s.lines, fmt.Sprintf("time=%s level=INFO msg=served request=req-%04d", at(time.Duration(60-i)*time.Second), i))
	}
	return s
}

// faultyScene is a bad night: no worker of a pool, a halted rotation, refusals.
func faultyScene() scene {
	s := busyScene()
	s.name, s.level, s.sentence = "faulty", "down", "pool embed has no ready worker"
	failed, ejected, silent := worker("embed", "1", "failed", 0, 0), worker("chat", "3", "ejected", 0.4, 3), worker("embed", "2", "quarantined", 0, 0)
	failed["reason"], failed["last_error"], failed["next_try"] = "it ended: exit status 1", "RuntimeError: out of device memory", at(-20*time.Second)
	ejected["reason"] = "5 failures in a row: connection refused"
	s.workers = []obj{worker("chat", "1", "ready", 0.96, 40), worker("chat", "2", "ready", 0.93, 38), ejected, unknown("chat", "4"), failed, silent}
	s.pools = []obj{pool("chat", 4, 2, "halted"), pool("embed", 2, 0, "idle")}
	s.findings = []obj{
		{"code": "no_worker", "level": "down", "since": at(2 * time.Minute), "pool": "embed", "worker": nil, "sentence": "pool embed has no ready worker; 4 requests wait for it", "actions": []string{"scale"}},
		{"code": "worker_failed", "level": "at_risk", "since": at(2 * time.Minute), "pool": "embed", "worker": "embed/1", "sentence": "embed/1 failed: out of device memory; the next try is in 20 s", "actions": []string{"start", "log"}},
		{"code": "rotation_halted", "level": "at_risk", "since": at(5 * time.Minute), "pool": "chat", "worker": "chat/4", "sentence": "the rotation of chat has halted at chat/4: not ready after 15 min", "actions": []string{"continue", "abort", "log"}},
	}
	s.rotations[0]["state"], s.rotations[0]["reason"], s.rotations[0]["current"], s.rotations[0]["queue"] = "halted", "chat/4 was not ready after 15 min", "4", []string{}
	s.rotations[0]["done"], s.rotations[0]["canary"] = []string{"1", "2", "3"}, nil
	s.events = append(s.events, event(6, 2*time.Minute, "embed/1", "failed", "supervisor", "exit status 1"))
	return s
}

// silentDoor is what a supervisor tells when its door is gone.
func silentDoor() scene {
	s := busyScene()
	s.name, s.level, s.sentence, s.door = "door gone", "down", "the door does not answer", "silent"
	s.findings = []obj{{"code": "door_silent", "level": "down", "since": at(9 * time.Second), "pool": nil, "worker": nil, "sentence": "the door has not answered for 9 s; it is started again", "actions": []string{"log"}}}
	return s
}

// crowdScene has a thousand workers, of which some are in trouble.
func crowdScene() scene {
	s := busyScene()
	s.name, s.workers, s.rotations, s.findings = "crowd", nil, nil, nil
	s.level, s.sentence = "at_risk", "3 of 1000 workers are ejected"
	for i := range 1000 {
		w := worker("chat", fmt.Sprint(i+1), "ready", float64(i%90)/100, i%30)
		if i%400 == 7 {
			w["state"], w["reason"] = "ejected", "5 failures in a row"
			s.findings = append(s.findings, obj{"code": "worker_failed", "level": "at_risk", "since": at(time.Minute), "pool": "chat", "worker": w["id"], "sentence": fmt.Sprintf("%s is ejected: 5 failures in a row", w["id"]), "actions": []string{"rotate", "log"}})
		}
		s.workers = append(s.workers, w)
	}
	s.pools = []obj{pool("chat", 1000, 997, "idle")}
	return s
}

// evilScene has markup and escape sequences in every name and text.
func evilScene() scene {
	s := faultyScene()
	s.name, s.sentence = "evil", evil
	w := worker("chat", evil, "ready", 0.5, 3)
	w["reason"], w["last_error"], w["models"], w["url"], w["version"] = evil, "\x1b[31m"+evil, []string{evil}, "javascript:document.title='owned'", evil
	s.workers = append(s.workers, w)
	s.pools = append(s.pools, pool(evil, 1, 1, "idle"))
	s.findings[0]["sentence"], s.findings[0]["pool"] = evil, evil
	s.rotations[0]["reason"], s.rotations[0]["waiting"], s.rotations[0]["cause"], s.rotations[0]["queue"] = evil, evil, evil, []string{evil}
	s.events = append(s.events, event(9, time.Second, "chat/"+evil, evil, evil, "\x1b]0;"+evil+"\a"))
	r := flying(99, "chat/"+evil, "streaming")
	r["id"], r["model"], r["key"] = evil, evil, evil
	q := flying(3, "", "queued")
	q["waits_for"], q["id"] = evil, "q"+evil
	s.requests = append(s.requests, r, q)
	old := gone(99, "chat/"+evil, "failed")
	old["id"], old["model"], old["reason"], old["path"] = evil, evil, evil, evil
	s.past = append(s.past, old)
	sick := ailment(evil, "warn", "chat/"+evil)
	sick["says"], sick["cause"], sick["command"], sick["helped"], sick["caused_by"] = evil, evil, evil, evil, evil
	sick["evidence"], sick["change"] = []obj{{"name": evil, "text": evil}}, obj{"now": evil, "proposed": evil, "vllm": evil}
	s.ailments = append(s.ailments, sick)
	s.lines = append(s.lines, evil, "\x1b[31mred\x1b[0m "+evil)
	return s
}

// mediaScene has a pool for each task beside chats, and a chat that takes anything.
func mediaScene() scene {
	s := quietScene()
	s.name, s.pools, s.workers = "media", nil, nil
	for _, task := range []string{"generate", "image", "speech", "transcribe", "embed", "score"} {
		p, w := pool(task, 2, 2, "idle"), worker(task, "1", "ready", 0.1, 0)
		p["task"], w["models"] = task, []string{"a-" + task}
		other := worker(task, "2", "ready", 0, 0)
		other["models"] = w["models"]
		s.pools, s.workers = append(s.pools, p), append(s.workers, w, other)
	}
	return s
}

// aloneScene is a door without a supervisor.
func aloneScene() scene {
	s := quietScene()
	s.name, s.alone, s.rights, s.schedules = "alone", true, "read", nil
	return s
}

func scenes() []scene {
	return []scene{emptyScene(), quietScene(), busyScene(), faultyScene(), silentDoor(), crowdScene(), evilScene(), aloneScene()}
}

func list(l []obj) []obj { return append([]obj{}, l...) }

// messages are what a stream begins with.
func (s scene) messages(requests bool, log string) []message {
	out := []message{{"hello", obj{"schema": 1, "version": "v1", "at": at(0), "rights": s.rights, "supervisor": !s.alone, "assets": web.Digest()}}, {"state", s.state()}}
	for i, e := range s.events {
		if i > 0 && e["id"].(int) > s.events[i-1]["id"].(int)+1 {
			out = append(out, message{"gap", obj{"what": "events", "missed": 2, "from": 3, "to": 4}})
		}
		out = append(out, message{"event", e})
	}
	if requests {
		waiting := 0
		for _, r := range s.requests {
			if r["state"] == "queued" {
				waiting++
			}
		}
		out = append(out, message{"requests", obj{"at": at(0), "total": len(s.requests), "waiting": waiting, "requests": list(s.requests)}})
	}
	if log != "" {
		out = append(out, message{"log", obj{"of": log, "lines": append([]string{}, s.lines...)}})
	}
	return append(out, message{"sample", obj{"at": at(0), "step_seconds": 5, "series": []obj{{"name": "waiting", "pool": nil, "worker": nil, "value": 0}}}})
}

func (s scene) state() obj {
	door := obj{"state": s.door, "version": "v1", "listen": "[::]:8000", "streams": len(s.requests), "queued": 0, "faults": []obj{}}
	if s.name == "faulty" || s.name == "evil" {
		door["faults"] = []obj{{"what": "certificate", "error": "tls: the key does not fit the certificate", "since": at(time.Hour)}}
		door["queued"] = 4
	}
	var supervisor any = obj{"state": "ready", "version": "v1"}
	if s.alone {
		supervisor = nil
	}
	figures := []obj{s.figures(nil)}
	for _, p := range s.pools {
		figures = append(figures, s.figures(p["name"]))
	}
	return obj{
		"schema": 1, "at": at(0), "verdict": obj{"level": s.level, "since": at(2 * time.Minute), "sentence": s.sentence, "findings": list(s.findings)},
		"door": door, "doors": []obj{{"id": "d1", "state": s.door, "version": "v1", "streams": len(s.requests), "queued": 0, "report_age_seconds": 0.3, "error": nil}},
		"supervisor": supervisor, "pools": list(s.pools), "figures": figures, "workers": list(s.workers), "rotations": list(s.rotations), "schedules": list(s.schedules),
	}
}

func (s scene) figures(pool any) obj {
	f := obj{"pool": pool, "requests_per_second": 6.4, "failed_per_second": 0.01, "refused_per_second": 0, "tokens_per_second": 1240, "prompt_tokens_per_second": 5300,
		"failed_share": 0.002, "ttft_p50_seconds": 0.14, "ttft_p95_seconds": 0.38, "waiting": 2, "in_flight": 68, "kv_usage": 0.47}
	if s.quiet {
		for k := range f {
			f[k] = nil
		}
		f["pool"], f["waiting"], f["in_flight"], f["requests_per_second"] = pool, 0, 0, 0
	}
	return f
}

// history is a wave with a hole in it; of a scene that is quiet there is none.
func (s scene) history(worker string) obj {
	h := obj{"schema": 1, "at": at(0), "from": at(15 * time.Minute), "step_seconds": 5, "begins": at(14 * time.Minute), "series": []obj{}, "marks": []obj{}}
	if s.quiet {
		return h
	}
	names := map[string]string{"requests_per_second": "1/s", "failed_per_second": "1/s", "refused_per_second": "1/s", "tokens_per_second": "tokens/s", "prompt_tokens_per_second": "tokens/s",
		"ttft_p50_seconds": "s", "ttft_p95_seconds": "s", "waiting": "requests", "in_flight": "requests", "kv_usage": "share", "ready": "workers"}
	series, size := []obj{}, map[string]float64{"1/s": 7, "tokens/s": 1200, "s": 0.4, "requests": 60, "share": 0.5, "workers": 4}
	var of, in any
	if worker != "" {
		of, in, size["workers"] = worker, "chat", 1
	}
	for name, unit := range names {
		values := []any{}
		for i := range 180 {
			switch {
			case i > 70 && i < 84:
				values = append(values, nil)
			case unit == "workers":
				values = append(values, size[unit]-float64(i/100%2))
			default:
				values = append(values, size[unit]*(0.7+0.3*math.Sin(float64(i+len(name)*9)/14)))
			}
		}
		series = append(series, obj{"name": name, "unit": unit, "pool": in, "worker": of, "begins": at(14 * time.Minute), "values": values})
	}
	h["series"], h["marks"] = series, list(s.events)
	return h
}

func (s scene) decision(id string) obj {
	candidate := func(name string, score, ttft float64, excluded string) obj {
		c := obj{"worker": name, "score": score, "capacity_tokens": 104832, "charged_tokens": int(score * 104832), "foreign_tokens": 300, "prefill_tokens": 900, "prefix_tokens": 512, "predicted_ttft_seconds": ttft, "report_age_seconds": 0.21}
		if excluded != "" {
			c["excluded"] = excluded
		}
		return c
	}
	return obj{"request": id, "at": at(time.Minute), "pool": "chat", "policy": "least_kv", "reason": "least", "chosen": "chat/1", "runner_up": "chat/3", "need_tokens": 1312,
		"candidates": []obj{candidate("chat/1", 0.24, 0.19, ""), candidate("chat/2", 0.31, 0.24, "it is draining"), candidate("chat/3", 0.68, 0.42, ""), candidate("chat/4", 0.88, 0.61, "")}}
}

func (s scene) decisions() obj {
	l := []obj{}
	for _, r := range s.requests {
		if r["state"] != "queued" {
			l = append(l, s.decision(r["id"].(string)))
		}
	}
	return obj{"schema": 1, "at": at(0), "decisions": l}
}

func (s scene) ended() obj { return obj{"schema": 1, "at": at(0), "ended": list(s.past)} }

func (s scene) config() obj {
	return obj{"state_dir": "/var/lib/roundhouse", "door": obj{"listen": ":8000", "limits": obj{"body": 67108864}}, "admin": obj{"listen": "127.0.0.1:8001", "token": "(redacted)"}, "pools": []obj{{"name": "chat", "driver": "process", "workers": 4}}}
}

// fileChanges is how the file differs: not at all on a quiet day.
func (s scene) fileChanges() obj {
	o := obj{"schema": 1, "file": "/etc/roundhouse/roundhouse.hcl", "error": nil, "changes": []obj{}}
	switch s.name {
	case "busy":
		o["changes"] = []obj{{"setting": "admin.token", "runs": `"***"`, "file": `"***"`}, {"setting": "pools.chat.workers.5", "runs": nil, "file": `{"name":"5"}`},
			{"setting": "pools.chat.engine.args", "runs": `["--max-num-seqs","256"]`, "file": `["--max-num-seqs","96"]`}}
	case "faulty":
		o["error"] = "roundhouse.hcl:12: unknown block \"poll\"; did you mean \"pool\"?"
	case "evil":
		o["file"], o["error"], o["changes"] = evil, evil, []obj{{"setting": evil, "runs": evil, "file": evil + "2"}}
	}
	return o
}

func ailment(rule, severity, object string) obj {
	values := []float64{}
	for i := range 40 {
		values = append(values, 0.9+0.1*math.Sin(float64(i)/5))
	}
	return obj{"rule": rule, "severity": severity, "confidence": "medium", "object": object, "since": at(12 * time.Minute),
		"says":  "the KV cache was 97 % full, and 1.8 requests were thrown out of it for each answer",
		"cause": "more requests are admitted than the cache has room for", "caused_by": "kv-leak of chat/2",
		"evidence": []obj{{"name": "KV in use", "text": "97 %", "values": values}, {"name": "preemptions", "text": "1.8 for each answer"}},
		"change":   obj{"now": "args = [\"--max-num-seqs\", \"256\"]", "proposed": "args = [\"--max-num-seqs\", \"96\"]", "vllm": "--max-num-seqs 96"},
		"command":  "roundhouse reload", "helped": "preemptions stay under 0.25 for each answer"}
}

func (s scene) diagnosis() obj {
	return obj{"schema": 1, "from": at(5 * time.Minute), "to": at(0), "samples": 60, "workers": []string{"chat/1"}, "findings": list(s.ailments),
		"unjudged": []obj{{"rule": "memory-leak", "why": "it needs 2 h of samples, and there are 5 min"}}}
}

func thresholds() obj {
	t := func(code string, value any, unit string, seconds float64, text string, level, rule, alert any) obj {
		return obj{"code": code, "text": text, "below": code == "prefix_hits", "value": value, "unit": unit, "for_seconds": seconds, "level": level, "rule": rule, "alert": alert}
	}
	return obj{"schema": 1, "thresholds": []obj{
		t("failed_share", 0.01, "share", 300, "requests that failed, of all that ended", "hurting", nil, "RoundhouseFailing"),
		t("ttft", 5, "s", 300, "time to the first token of one request in twenty", "hurting", nil, "RoundhouseHighTTFT"),
		t("report_age", 30, "s", 0, "since a worker has reported", "at_risk", "blind", "RoundhouseReportsOld"),
		t("prefix_hits", 0.1, "share", 3600, "of prompt tokens found in a cache", nil, "prefix-misses", "RoundhousePrefixMisses"),
		t("kv_idle", nil, "", 60, "KV held by a worker that nobody asks", nil, "kv-leak", nil),
	}}
}
