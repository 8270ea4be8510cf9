# Made by `roundhouse import` from a vllm command line.
# `roundhouse validate FILE` checks it, `roundhouse up -c FILE` runs it.
#
# What changed, and what was not carried over:
# - ZE_AFFINITY_MASK=0,1,2,3 names a device by its number, which is not stable; each worker gets one
#   free device instead. To choose, write gpus = ["0000:18:00.0"] into its block; `roundhouse
#   doctor` lists the addresses.
# - Our own engine serves the model; it takes vLLM's flags. `roundhouse import --image IMAGE` keeps
#   vLLM, in containers.
# - --data-parallel-size 4 has become 4 workers: each takes its turn alone, and one that fails takes
#   no other with it.

door {
  listen = ":8000"
}

pool "chat" {
  driver  = "process"
  workers = 4

  engine {
    model             = "/llm/models/Qwen3-8B"
    served_model_name = ["model"]
    quantization      = "sym_int4"
    args              = ["--gpu-memory-util=0.9", "--enforce-eager", "--block-size", "64"]
    environment = {
      "VLLM_LOGGING_LEVEL" = "INFO"
    }
  }
}
