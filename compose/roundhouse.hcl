# What compose.yaml runs: two workers on the demonstration model, as processes
# of one container. Put your own file beside compose.yaml and mount it here.

state_dir = "/var/lib/roundhouse"

door {
  listen = ":8000"
}

# The admin API stays inside the container: docker compose exec roundhouse
# roundhouse ps. Prometheus shares the container's network to reach it.
admin {
  listen = "127.0.0.1:8001"
}

pool "chat" {
  workers = 2
  devices = "cpu"

  engine {
    served_model_name = ["roundhouse-demo"]
  }

  rotation {
    schedule      = "0 3 * * *"
    drain_timeout = "60s"
    stop_grace    = "10s"
  }
}
