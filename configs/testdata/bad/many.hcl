# Everything that is not of the syntax comes at once, in order of the lines.
colour = "green"

door {
  listen = 8000
  polcy  = "fastest"
  limits { body = "64 megabytes" }
}

admin {
  listen = "10.0.0.1:8001"
}

pool "chat" {
  drivr   = "process"
  workers = "two"
  rotation {
    schedule = "0 3 * * *"
    schedul  = "0 4 * * *"
    strategy = "inplace"
  }
  sidecar {}
}
