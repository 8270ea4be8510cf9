# What compose.yaml runs: two workers on the demonstration model, each in a
# container that the supervisor makes. `docker compose exec supervisor roundhouse
# reload` puts a change in force.

state_dir = "/var/lib/roundhouse"

log {
  access = true # one line a request in `docker compose logs door`, without its prompt
}

# The door is a service of its own: compose.yaml publishes its port.
door {
  listen = ":8000"
}

# The admin API stays inside the supervisor's container: docker compose exec
# supervisor roundhouse ps. Prometheus shares that container's network to reach it.
admin {
  listen = "127.0.0.1:8001"
}

pool "chat" {
  driver      = "docker"
  image       = "roundhouse/worker-cpu:latest"
  pull_policy = "never"        # `make images` has put it there
  networks    = ["roundhouse"] # compose.yaml's, so that the door reaches workers by name
  workers     = 2
  devices     = "cpu"

  engine {
    served_model_name = ["roundhouse-demo"]
  }

  rotation {
    schedule      = "0 3 * * *"
    drain_timeout = "60s"
    stop_grace    = "10s"
  }
}
