# The two engines of llm-scaler's load_balancer deployment, with its container
# names, ports, environment, mounts and flags. What runs already is served as it
# is, and each container is replaced at its first turn. Both serve at once, where
# the script there keeps one of them idle.
#
# Change the PCI addresses to those that `roundhouse doctor` shows, and the image
# to the version that you run. Neither container is privileged: each gets its
# own render node and no other.

door {
  listen = ":8000"
}

admin {
  listen = "127.0.0.1:8001"
}

pool "model" {
  driver       = "docker"
  image        = "intel/llm-scaler-vllm:latest"
  network_mode = "host"
  shm_size     = "32GiB"
  volumes      = ["/home/intel/LLM/:/llm/models/"]

  environment = {
    VLLM_WORKER_MULTIPROC_METHOD      = "spawn"
    VLLM_OFFLOAD_WEIGHTS_BEFORE_QUANT = "1"
    VLLM_ALLOW_LONG_MAX_MODEL_LEN     = "1"
    UR_L0_USE_IMMEDIATE_COMMANDLISTS  = "1"
  }

  engine {
    model             = "/llm/models/DeepSeek-R1-Distill-Qwen-7B"
    served_model_name = ["model"]
    max_model_len     = 32768
    args = [
      "--dtype=float16", "--enforce-eager", "--trust-remote-code", "--gpu-memory-util=0.9",
      "--no-enable-prefix-caching", "--max-num-batched-tokens=8192", "--max-num-seqs=256", "--block-size=64", "-tp=1",
    ]
  }

  worker "vllm_1" {
    gpus     = ["0000:18:00.0"]
    port     = 8008
    takeover = "vllm_1"
  }
  worker "vllm_2" {
    gpus     = ["0000:4b:00.0"]
    port     = 8009
    takeover = "vllm_2"
  }

  rotation {
    schedule      = "0 3 * * *"
    drain_timeout = "10m"
    ready_timeout = "20m"
    stop_grace    = "60s"
  }
}
