# What compose.vllm.yaml runs. configs/llm-scaler.hcl is the same without compose,
# on the host's network, and takes over what runs already.

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

pool "model" {
  driver   = "docker"
  image    = env("VLLM_IMAGE")
  networks = ["roundhouse"]
  shm_size = "32GiB"
  volumes  = ["/home/intel/LLM/:/llm/models/"]

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

  # The PCI addresses are those that `roundhouse doctor` shows. Without `gpus` each
  # takes a free one.
  worker "vllm_1" {
    gpus = ["0000:18:00.0"]
    port = 8008
  }
  worker "vllm_2" {
    gpus = ["0000:4b:00.0"]
    port = 8009
  }

  rotation {
    schedule      = "0 3 * * *"
    drain_timeout = "10m"
    ready_timeout = "20m"
    stop_grace    = "60s"
  }
}
