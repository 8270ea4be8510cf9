# No line and no message may show what a secret is.
door {
  listen = env("A_KEY")
  policy = "${env("A_KEY")}"
}

admin {
  token = ["hush-in-the-file"]
}

pool "a" {
  driver = "static"
  worker "x" {
    url     = env("A_KEY")
    api_key = "hush-literal", "again"
  }
}
