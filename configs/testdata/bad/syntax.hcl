# Two syntax errors, an unknown attribute and a wrong value: only the first
# syntax error is worth reading.
door {
  listen = ":8000
  polcy  = "fastest"
}
pool "chat" {
  workers = = 2
}
