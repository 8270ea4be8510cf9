# Faults that no block has alone.
door {
  policy = "plugin:ours"
}

pool "a" {
  driver = "docker"
  image  = "vllm:TAG"
  worker "one" {
    gpus = ["0000:18:00.0"]
    port = 8001
  }
  worker "two" {
    gpus = ["0000:18:00.0"]
    port = 8009
  }
}

pool "b" {
  worker "one" {
    gpus = ["0000:18:00.0"]
    port = 8009
  }
  rotation {
    min_ready = 1
    schedule  = "0 3 31 2 *"
  }
}

route "r" {
  target "m" {
    weight = 0
  }
}
