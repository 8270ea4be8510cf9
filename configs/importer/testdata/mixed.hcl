# Made by `roundhouse import` from compose.yaml.
# `roundhouse validate FILE` checks it, `roundhouse up -c FILE` runs it.
#
# What changed, and what was not carried over:
# - --api-key stands at the door now, as its SHA-256; clients keep their key. The workers have none,
#   and listen where the door alone reaches them.
# - CUDA_VISIBLE_DEVICES=0,1 names a device by its number, which is not stable; each worker gets one
#   free device instead. To choose, write gpus = ["0000:18:00.0"] into its block; `roundhouse
#   doctor` lists the addresses.
# - embed: networks are Docker's names (docker network ls); compose puts its project's name before
#   them.
# - embed: its healthcheck is not needed; the supervisor asks /health, watches the tokens that come
#   out, and tries a completion before a worker is used.
# - redis (redis:7): not a vLLM server; it was left as it is.
# - grafana: compose/compose.monitoring.yaml brings Prometheus and Grafana with data source,
#   dashboards and alerts set up.
# - edge (nginx:1.27): the door takes its place.

door {
  listen = ":9000"
  limits {
    idle       = "1h"
    first_byte = "1h"
  }
  key "imported-1" {
    sha256 = ["d3e64608f5182a4408eef248830800d9f4b82167cb91b4b193ac488aa1235fc9"]
  }
}

pool "chat" {
  driver          = "docker"
  gpus_per_worker = 2
  image           = "vllm/vllm-openai:v0.21.0"
  volumes         = ["/srv/mixed/models:/models:ro"]
  ipc             = "host"
  ulimits = {
    "memlock" = -1
    "nofile"  = 65536
  }

  engine {
    model             = "/models/Qwen3-8B"
    served_model_name = ["chat", "gpt-4o"]
    max_model_len     = 32000
    args              = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--tensor-parallel-size", "2"]
    environment = {
      "HF_HUB_OFFLINE" = "1"
    }
  }

  rotation {
    # Once a night, one worker after the other; leave it out to rotate by hand alone.
    schedule = "0 3 * * *"
  }

  worker "chat-1" {
    # If it runs already: takeover = its container's name (docker ps).
  }

  worker "chat-2" {
    # If it runs already: takeover = its container's name (docker ps).
  }
}

pool "bge-m3" {
  driver   = "docker"
  image    = "vllm/vllm-openai:v0.21.0"
  volumes  = ["/srv/mixed/models:/models:ro"]
  networks = ["internal"]
  ipc      = "host"
  ulimits = {
    "memlock" = -1
    "nofile"  = 65536
  }

  engine {
    model             = "/models/bge-m3"
    served_model_name = ["/models/bge-m3"]
    args              = ["--task", "embed", "--override", "{\"a\": \"b c\"}"]
    environment = {
      "HF_HUB_OFFLINE" = "1"
    }
  }

  rotation {
    # Once a night, one worker after the other; leave it out to rotate by hand alone.
    schedule = "0 3 * * *"
  }

  worker "embed" {
    # If it runs already: takeover = its container's name (docker ps).
    port = 8002
  }
}
