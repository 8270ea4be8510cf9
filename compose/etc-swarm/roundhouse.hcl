# What stack.yaml runs: workers on the demonstration model, each a service of the
# Swarm on whichever node has room. `docker exec` into the supervisor's container and
# `roundhouse reload` puts a change in force.

state_dir = "/var/lib/roundhouse"

log {
  access = true # one line a request in `docker service logs roundhouse_door`, without its prompt
}

# The doors are a service of their own: stack.yaml publishes their port.
door {
  listen = ":8000"
}

# The admin API stays inside the supervisor's container.
admin {
  listen = "127.0.0.1:8001"
}

# Starts and turns at once. Each may be on a machine of its own.
supervisor {
  parallel = 2
}

pool "chat" {
  driver      = "swarm"
  image       = "roundhouse/worker-cpu:latest"
  pull_policy = "never"        # `make images` has put it there, and docker load on every other node
  networks    = ["roundhouse"] # stack.yaml's, so that the doors reach the workers
  workers     = 2

  # constraints       = ["node.labels.gpu == h100"]
  # generic_resources = { "NVIDIA-GPU" = 1 }

  engine {
    served_model_name = ["roundhouse-demo"]
  }

  rotation {
    schedule      = "0 3 * * *"
    drain_timeout = "60s"
    stop_grace    = "10s"
  }
}
