# What compose.xpu.yaml runs: a model of your own on two Intel GPUs.

state_dir = "/var/lib/roundhouse"

log {
  access = true
}

door {
  listen = ":8000"
}

admin {
  listen = "127.0.0.1:8001"
}

pool "chat" {
  driver      = "docker"
  image       = "roundhouse/worker-xpu:latest"
  pull_policy = "never"
  networks    = ["roundhouse"]
  volumes     = ["/srv/models:/models:ro"]
  workers     = 2
  devices     = "auto" # a free GPU each: its render node and no other, on its NUMA node's cores

  engine {
    model             = "/models/Qwen3-8B"
    served_model_name = ["model"]
    quantization      = "sym_int4"
    max_model_len     = 16384
  }

  rotation {
    schedule      = "0 3 * * *"
    drain_timeout = "60s"
    stop_grace    = "10s"
  }
}
