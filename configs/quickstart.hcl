# The quick start: two workers on the demonstration model that is built in.
# `make run` starts it. No download, no GPU, no root.

door {
  listen = ":8000"
}

admin {
  listen = "127.0.0.1:8001"
}

pool "chat" {
  workers = 2
  devices = "cpu"

  engine {
    served_model_name = ["roundhouse-demo"]
    args              = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"] # for clients that always send tools
  }

  # There is no schedule: `roundhouse rotate chat` restarts the workers by hand.
  rotation {
    drain_timeout = "60s"
    stop_grace    = "10s"
  }
}
