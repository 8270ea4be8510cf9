# What cannot be read in one block hides nothing of what is wrong in another, and
# what only follows of it is not told.
admin {
  listen = "10.0.0.1:8001"
}

door {
  policy = "least"
}

pool "chat" {
  workers = "two"
  policy  = "plugin:order"

  rotation {
    min_ready = 3
  }
}

pool "night" {
  rotation {
    schedule = "0 3 * *"
    timezone = "Mars/Olympus"
    blackout = ["Mon 8-20", "Tue 25:00-26:00"]
  }
}

plugin "order" {
  kind = "polcy"
}

plugin "guard" {
  kind = "filter"
}

route "fast" {
  fallback = "nowhere"
}
