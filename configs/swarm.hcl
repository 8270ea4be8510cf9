# A fleet: workers as services of a Docker Swarm, wherever its nodes have room. This
# supervisor runs on a manager (or asks one: DOCKER_HOST); `roundhouse doctor -c`
# reports whether a node fits. compose/stack.yaml has Swarm run door and supervisor too.
#
# Each worker is a service of one task that Swarm itself never restarts: who restarts
# is one, and that is the supervisor.

door {
  listen = ":8000"
}

admin {
  listen = "127.0.0.1:8001"
}

# Starts and turns at once. Each may be on a machine of its own.
supervisor {
  parallel = 4
}

pool "chat" {
  driver   = "swarm"
  image    = "vllm/vllm-openai:v0.21.0" # pinned to its digest, so that every node runs the same
  workers  = 8
  shm_size = "8GiB"
  volumes  = ["/srv/models:/models:ro"] # of the node that the worker runs on

  # Where a worker may run, and what it takes there. Nodes announce their GPUs in
  # their daemon.json: "node-generic-resources": ["NVIDIA-GPU=GPU-45cbf7b3"].
  constraints       = ["node.labels.gpu == h100"]
  generic_resources = { "NVIDIA-GPU" = 1 }

  # Without networks, each worker's port is published on its node, to everyone who
  # reaches that node. A door in a container names an overlay network instead:
  # networks = ["roundhouse"]

  engine {
    model             = "/models/Qwen3-8B"
    served_model_name = ["model"]
    max_model_len     = 32768
  }

  rotation {
    schedule      = "0 3 * * *"
    drain_timeout = "10m"
    stop_grace    = "60s"
  }
}
