door {
  listen     = env("A_KEY")
  policy     = "${env("A_KEY")}"
  slow_start = env("A_KEY")
  memory     = env("A_KEY")
  metrics    = env("A_KEY")
}

admin {
  token = ["hush-in-the-file"]
}

pool "a" {
  driver = "static"
  worker "x" {
    url     = env("A_KEY")
    api_key = 12
  }
  rotation { timezone = env("A_KEY") }
}
