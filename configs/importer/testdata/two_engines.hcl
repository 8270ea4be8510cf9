# Made by `roundhouse import` from docker-compose.yml.
# `roundhouse validate FILE` checks it, `roundhouse up -c FILE` runs it.
#
# What changed, and what was not carried over:
# - vllm_1, vllm_2: before vllm its shell ran "source /opt/intel/oneapi/setvars.sh --force". Current
#   images need that no more and may not have the file; if yours does, write entrypoint and command
#   instead of the engine block.
# - intel/llm-scaler-vllm has no fixed tag: what runs tomorrow is not what was tried today. Pin it.
# - ZE_AFFINITY_MASK=2 names a device by its number, which is not stable; each worker gets one free
#   device instead. To choose, write gpus = ["0000:18:00.0"] into its block; `roundhouse doctor`
#   lists the addresses.
# - vllm_1, vllm_2: privileged and /dev/dri are gone: each worker gets the render node of its own
#   GPU and nothing else.
# - vllm_1, vllm_2: working_dir /llm is the image's affair; relative paths in args would need it.
# - ZE_AFFINITY_MASK=3 names a device by its number, which is not stable; each worker gets one free
#   device instead. To choose, write gpus = ["0000:18:00.0"] into its block; `roundhouse doctor`
#   lists the addresses.
# - haproxy (haproxy:latest): the door takes its place.
# - log: the door writes one line a request, without its prompt; log { access = false } ends that.
# - maxconn 1024: the door takes 20000 connections and queues 2048 requests; limits and queue blocks
#   change that.
# - stats socket: `roundhouse drain`, `undrain` and `ps` take its place, on 127.0.0.1 alone.
# - mode tcp: the door speaks HTTP, so a worker that fails is tried elsewhere and a client gets an
#   answer, not a closed socket.
# - balance roundrobin chose a server for each connection; the door chooses a worker for each
#   request, the one whose KV cache will be least full.
# - default-server inter 2s rise 2 fall 3 slowstart 10s: a worker is used once it is healthy and has
#   answered one real request, left when it refuses connections or computes nothing, and after a
#   start comes to its full share within slow_start, 30s unless the door block says otherwise.
# - vllm_bootstrap_and_rotate.sh: take its line out of crontab (crontab -l | grep -v
#   vllm_bootstrap_and_rotate.sh | crontab -) before `roundhouse up`.

door {
  listen = ":8000"
  limits {
    idle       = "15m"
    first_byte = "15m"
  }
}

pool "vllm" {
  driver       = "docker"
  image        = "intel/llm-scaler-vllm"
  volumes      = ["/home/intel/LLM/:/llm/models/"]
  shm_size     = "32GiB"
  network_mode = "host"

  engine {
    model             = "/llm/models/DeepSeek-R1-Distill-Qwen-7B"
    served_model_name = ["model"]
    max_model_len     = 32768
    args              = ["--dtype=float16", "--enforce-eager", "--trust-remote-code", "--gpu-memory-util=0.9", "--no-enable-prefix-caching", "--max-num-batched-tokens=8192", "--max-num-seqs", "256", "--block-size", "64"]
    environment = {
      "VLLM_ALLOW_LONG_MAX_MODEL_LEN"     = "1"
      "VLLM_OFFLOAD_WEIGHTS_BEFORE_QUANT" = "1"
      "VLLM_WORKER_MULTIPROC_METHOD"      = "spawn"
    }
  }

  rotation {
    # The old script's crontab line * 3 * * * started it sixty times between 03:00 and 03:59, and one of
    # two engines stood idle; this is once a night, and all of them serve.
    schedule = "0 3 * * *"
  }

  worker "vllm_1" {
    port     = 8008
    takeover = "vllm_1" # it runs already: served as it is, replaced at its first turn
  }

  worker "vllm_2" {
    port     = 8009
    takeover = "vllm_2" # it runs already: served as it is, replaced at its first turn
  }
}
