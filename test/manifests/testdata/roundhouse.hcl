door {
  listen = ":8000"
  peers  = ["roundhouse-peers:8001"]
}

admin {
  listen = ":8001"
  token  = env("ROUNDHOUSE_ADMIN_TOKEN")
}

pool "chat" {
  driver   = "kubernetes"
  selector = "app=vllm"
  port     = 8000

  rotation {
    schedule      = "0 3 * * *"
    drain_timeout = "10m"
    ready_timeout = "30m"
  }
}

route "alias" {
  target "chat" {
    weight = 100
  }
}
