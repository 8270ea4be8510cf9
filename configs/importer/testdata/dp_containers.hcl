# Made by `roundhouse import` from a vllm command line.
# `roundhouse validate FILE` checks it, `roundhouse up -c FILE` runs it.
#
# What changed, and what was not carried over:
# - --data-parallel-size 2 has become 2 workers: each takes its turn alone, and one that fails takes
#   no other with it.
# - --api-key stands at the door now, as its SHA-256; clients keep their key. The workers have none,
#   and listen where the door alone reaches them.

door {
  listen = ":8000"
  key "imported-1" {
    sha256 = ["d3e64608f5182a4408eef248830800d9f4b82167cb91b4b193ac488aa1235fc9"]
  }
}

pool "vllm" {
  driver          = "docker"
  workers         = 2
  gpus_per_worker = 4
  image           = "vllm/vllm-openai:v0.21.0"

  engine {
    model             = "Qwen/Qwen3-32B"
    served_model_name = ["Qwen/Qwen3-32B"]
    args              = ["--speculative-config", "{\"method\": \"ngram\"}", "--tensor-parallel-size", "4"]
  }
}
