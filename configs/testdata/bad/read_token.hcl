admin {
  read_token = "look"
}

pool "p" {
  workers = 1
}
