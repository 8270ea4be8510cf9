# Made by `roundhouse import` from docker-compose.yml.
# `roundhouse validate FILE` checks it, `roundhouse up -c FILE` runs it.
#
# What changed, and what was not carried over:
# - --api-key stands at the door now, as its SHA-256; clients keep their key. The workers have none,
#   and listen where the door alone reaches them.
# - qwen, intel: HF_TOKEN looks like a secret, and stands in this file now. Better: HF_TOKEN =
#   env("HF_TOKEN"), and the value in roundhouse's own environment.
# - qwen: not carried over, because it would open the host to a worker: /dev/fuse, SYS_ADMIN,
#   seccomp=unconfined.
# - qwen: working_dir /llm is the image's affair; relative paths in args would need it.
# - qwen: its healthcheck is not needed; the supervisor asks /health, watches the tokens that come
#   out, and tries a completion before a worker is used.
# - qwen: not carried over, because a pool has no such settings: secrets, tmpfs.
# - qwen: device_ids 0, 1: numbers change with a card more, so each worker gets 2 free devices
#   instead. To choose, write gpus = ["0000:18:00.0"] or UUIDs into its block; `roundhouse doctor`
#   lists them.
# - intel: privileged and /dev/dri are gone: each worker gets the render node of its own GPU and
#   nothing else.
# - intel: it stands under the profiles intel; it was imported as if they were chosen.
# - db (postgres:16): not a vLLM server; it was left as it is.
# - nginx (nginx): the door takes its place.

door {
  listen = ":8000"
  key "imported-1" {
    sha256 = ["2a8a1240f50636655520ac8ed22aa29473b8517b4abfdbc3bc03bcad73fc8849"]
  }
}

pool "qwen" {
  driver          = "docker"
  gpus_per_worker = 2
  image           = "vllm/vllm-openai:v0.21.0"
  shm_size        = "16GiB"
  ipc             = "host"
  ulimits = {
    "memlock" = -1
    "nofile"  = 65536
  }
  cap_add       = ["SYS_PTRACE"]
  security_opt  = ["no-new-privileges"]
  devices_extra = ["/dev/infiniband/uverbs0"]
  pids_limit    = 4096
  memory        = "64GiB"
  extra_hosts   = ["host.docker.internal:host-gateway"]

  engine {
    model             = "Qwen/Qwen3-8B"
    served_model_name = ["qwen"]
    max_model_len     = 16000
    environment = {
      "HF_TOKEN"           = "not-a-real-one"
      "VLLM_LOGGING_LEVEL" = "INFO"
    }
  }

  rotation {
    # Once a night, one worker after the other; leave it out to rotate by hand alone.
    schedule = "0 3 * * *"
  }

  worker "qwen" {
    port     = 8003
    takeover = "qwen" # it runs already: served as it is, replaced at its first turn
  }
}

pool "qwen-2" {
  driver   = "docker"
  image    = "vllm/vllm-openai:v0.21.0"
  volumes  = ["/srv/models:/llm/models:ro", "hfcache:/root/.cache/huggingface"]
  shm_size = "16GiB"
  ipc      = "host"
  ulimits = {
    "memlock" = -1
    "nofile"  = 65536
  }

  engine {
    model             = "/llm/models/Qwen3-8B"
    served_model_name = ["qwen"]
    quantization      = "fp8"
    environment = {
      "HF_TOKEN"           = "not-a-real-one"
      "VLLM_LOGGING_LEVEL" = "INFO"
    }
  }

  rotation {
    # Once a night, one worker after the other; leave it out to rotate by hand alone.
    schedule = "0 3 * * *"
  }

  worker "intel" {
    # If it runs already: takeover = its container's name (docker ps).
    gpus = ["10000:18:00.0"]
    port = 8009
  }
}
