# Every block and every attribute that a configuration may hold, once. It is
# for looking things up; quickstart.hcl is for beginning.

state_dir = "/var/lib/roundhouse" # journal, locks, logs, cache

log {
  level  = "info" # debug | info | warn | error
  format = "text" # text | json
  access = true   # one line a request, without its prompt
}

door {
  listen     = ":8000"
  policy     = "least_kv" # least_kv | fastest | least_inflight | round_robin | plugin:<name>
  memory     = "4GiB"     # all that is held of requests and answers at once
  metrics    = "listen"   # listen | admin | off
  slow_start = "30s"      # a worker that joins reaches its full share after this

  # admin APIs of hosts whose doors hold keys to the same limits and budgets
  peers = ["host-2.example:8001"]

  # whose X-Forwarded-For is believed: the client's address in the log of requests
  trusted_proxies = ["10.0.0.0/8"]

  # whose connections may begin with a PROXY header (send-proxy, send-proxy-v2): the
  # client that it names is the connection's
  proxy_protocol = ["10.0.0.0/8"]

  http2 = true # beside HTTP/1.1: by ALPN with tls, else by prior knowledge (h2c)

  tls {
    cert = "/etc/roundhouse/cert.pem"
    key  = "/etc/roundhouse/key.pem"
  }

  limits {
    body        = "64MiB"
    headers     = "64KiB"
    header_read = "10s"
    body_idle   = "30s"
    upload      = "4GiB" # a body that passes through without being held (pools with a task)
    upload_rate = "1KiB" # a second, of a body on the whole; a slower one is refused with 408
    first_byte  = "10m"  # suspended while the worker makes progress
    idle        = "10m"  # between two events
    connections = 20000
    streams     = 256 # of HTTP/2, on one connection at once; each counts as a connection
  }

  queue {
    max_requests = 2048
    max_wait     = "60s"
  }

  retry {
    attempts = 2
    budget   = 0.2 # share of the last ten seconds' requests that may be retries
  }

  batches {         # /v1/files and /v1/batches, in state_dir
    concurrency = 8 # lines under way at once, with low priority; 0: not served
    lines       = 50000
    file        = "200MiB"
    storage     = "20GiB" # of all files
    keep        = "720h"  # files, and batches that have ended
    window      = "168h"  # the longest completion_window
  }
  resume {
    enabled = true
  }

  breaker {
    failures = 5
    open     = "10s"
  }

  cors {
    origins = ["https://app.example"]
  }

  # Requests as lines of JSON; texts only with bodies. The door must be able to write there.
  log_requests {
    path   = "/var/log/roundhouse/requests.jsonl"
    keys   = ["team-a"] # left out: all
    bodies = false
    body   = "64KiB"  # of a request's and of an answer's text
    size   = "100MiB" # of a file; then the next begins
    files  = 5
  }

  budget_timezone = "UTC" # where the days and months of budgets begin

  # `roundhouse key team-a` prints a key and such a block. `roundhouse key add team-b`
  # makes one at run time, which stands in the state folder.
  key "team-a" {
    sha256              = ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]
    models              = ["*"]
    pools               = ["chat"] # left out: all
    requests_per_minute = 600
    tokens_per_minute   = 200000
    max_concurrent      = 64
    priority            = "normal" # high | normal | low
    weight              = 1
    expires             = "2031-01-31T00:00:00Z"
    day_budget {
      requests   = 10000
      tokens     = 5000000 # of prompts and answers together
      tokens_in  = 4000000
      tokens_out = 1000000
    }
    month_budget {
      tokens = 100000000
    }
  }

  # What requests by way of a gateway may say that they are for (docs/kubernetes.md).
  objective "batch" {
    priority = -1 # above 0: first; below 0: refused where there is no room at once
  }
}

admin {
  listen     = "127.0.0.1:8001" # or "unix:///run/roundhouse/admin.sock"
  token      = env("ROUNDHOUSE_ADMIN_TOKEN")
  read_token = env("ROUNDHOUSE_READ_TOKEN") # for Prometheus and dashboards: it reads, and changes nothing
  console    = "full"                       # full | read_only (browsers only look) | off
}

supervisor {
  parallel = 1 # loads and turns at once on one machine; a restart waits for no drain, pull or first start
}

# Workers of our own, one on each free Intel GPU.
pool "chat" {
  driver          = "process" # process | docker | swarm | static | kubernetes | plugin:<name>
  workers         = 2
  policy          = "fastest"
  task            = "generate" # generate | embed | score | transcribe | speech | image | any: paths that pass through (docs/door.md)
  devices         = "auto"     # auto | cpu
  gpus_per_worker = 1
  reasoning_end   = "</think>"

  engine {
    model             = "/llm/models/Qwen3-8B" # left out: the demonstration model
    served_model_name = ["model"]
    quantization      = "sym_int4"
    max_model_len     = 8192
    args              = ["--block-size", "64"]
    environment       = { VLLM_LOGGING_LEVEL = "INFO" }
  }

  rotation {
    schedule       = "0 3 * * *"
    timezone       = "Europe/Berlin" # left out: the machine's
    strategy       = "in_place"      # in_place | surge
    drain_timeout  = "10m"
    ready_timeout  = "15m"
    stop_grace     = "60s"
    min_ready      = 1      # left out: workers - 1
    missed         = "once" # once | skip
    jitter         = "0s"
    blackout       = ["Mon-Fri 08:00-20:00"]
    after_requests = 0   # 0: never
    after_tokens   = 0   # 0: never
    memory_growth  = 0.2 # of its first hour; 0: never
    slowdown       = 0.3 # of its first hour; 0: never
  }

  canary {
    share        = 0.1
    min_requests = 200
  }

  # LoRA adapters, which the supervisor loads into each worker, and unloads once their
  # block is gone.
  adapter "chat-v2" {
    path = "/models/chat-v2" # as the worker sees it
  }
}

# Containers of vLLM. The names are those of a compose file.
pool "vllm" {
  driver       = "docker"
  image        = "intel/llm-scaler-vllm:TAG"
  pull_policy  = "missing" # missing | always | never
  entrypoint   = ["bash", "-lc"]
  command      = ["vllm serve /llm/models/Qwen3-8B --served-model-name model --port $PORT"]
  environment  = { VLLM_WORKER_MULTIPROC_METHOD = "spawn" }
  volumes      = ["/home/intel/LLM:/llm/models"]
  shm_size     = "32GiB"
  ulimits      = { memlock = -1 }
  network_mode = "host"
  ipc          = "private"
  init         = true
  user         = "1000:1000"
  labels       = { "example.team" = "a" }

  # What opens a container further, and what bounds it.
  cap_add       = ["IPC_LOCK"] # SYS_PTRACE, IPC_LOCK, SYS_NICE
  security_opt  = ["no-new-privileges", "apparmor=docker-default"]
  devices_extra = ["/dev/infiniband/uverbs0"] # accelerators' nodes, beside its own GPUs'
  pids_limit    = 4096
  memory        = "96GiB" # shm_size counts as memory; no swap beside it
  extra_hosts   = ["cache.example:10.0.0.7"]

  worker "vllm_1" {
    gpus     = ["0000:18:00.0"] # a PCI address or an NVIDIA UUID
    port     = 8008
    takeover = "vllm_1" # a container that runs already: replaced at its first turn
  }

  worker "vllm_2" {
    gpus = ["0000:4b:00.0"]
    port = 8009

    # Of this worker alone: variables and volumes override the pool's by name and
    # target, args follow the pool's.
    environment = { VLLM_LOGGING_LEVEL = "DEBUG" }
    args        = []
    volumes     = ["/srv/cache-2:/root/.cache"]
  }

  scrape {
    interval = "250ms"
    names    = { kv_cache_usage = "vllm:kv_cache_usage_perc" }
  }
}

# The same, on a network of Docker's own, with the command made of the engine block.
pool "embed" {
  driver   = "docker"
  image    = "vllm/vllm-openai:TAG"
  networks = ["roundhouse"]

  engine {
    model = "/models/bge-m3"
    args  = ["--task", "embed"]
  }
}

# The same as services of a Docker Swarm, wherever a node fits.
pool "fleet" {
  driver            = "swarm"
  image             = "vllm/vllm-openai:TAG"
  constraints       = ["node.labels.gpu == h100"]
  generic_resources = { "NVIDIA-GPU" = 1 } # of a kind that nodes announce; for each worker
  networks          = ["roundhouse"]       # overlay; left out: a port of the worker's node

  engine {
    model = "/models/Qwen3-8B"
  }
}

# Servers that somebody else runs. Models are learned from their /v1/models.
pool "elsewhere" {
  driver = "static"

  worker "a" {
    url       = "http://127.0.0.1:8010"
    api_key   = env("A_KEY")
    kv_tokens = 114432 # where the worker does not say
  }
}

# Pods of a Kubernetes cluster, for balance and picker (docs/kubernetes.md).
pool "pods" {
  driver    = "kubernetes"
  selector  = "app=vllm" # with port; or an inference_pool alone
  port      = 8000
  namespace = "models" # left out: the program's own
}

pool "inference" {
  driver         = "kubernetes"
  inference_pool = "chat"
}

route "lora-request" {
  aliases = ["lora"]
  sticky  = "session" # session (x-session-id) | user | prefix | none

  target "tweet-summary" {
    weight = 50
  }

  target "sql-lora" {
    weight = 50
  }

  fallback = "chat" # a pool or model, when no target can serve
  # A model on trial: its share grows by steps while it is no worse than the targets.
  canary "chat-v2" {
    steps        = [0.05, 0.25, 0.5]
    min_requests = 200   # of the model, at each step
    hold         = "10m" # at each step, at least
    promote      = true  # after the last step it gets all; false: an operator is waited for
  }

  keep_name = true # answers carry the name that was asked for, not the target's
}

plugin "guard" {
  kind       = "filter" # policy | filter | driver | notifier
  path       = "/usr/lib/roundhouse/plugins/guard"
  sha256     = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
  on_failure = "closed" # closed | open
  user       = "nobody"
}

otlp {
  endpoint = "http://127.0.0.1:4318"
}
