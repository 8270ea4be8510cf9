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
}
