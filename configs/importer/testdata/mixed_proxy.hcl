# Made by `roundhouse import` from nginx.conf.
# `roundhouse validate FILE` checks it, `roundhouse up -c FILE` runs it.
#
# What changed, and what was not carried over:
# - server … max_fails=3: the door weighs workers by what their KV cache holds, not by numbers in
#   a file.
# - least_conn: the door chooses the worker whose KV cache will be least full.
# - proxy_buffering off is not needed: streams pass as they come.
# - The workers are run by somebody else (driver "static"): Roundhouse routes, resumes and watches,
#   and restarts nothing. `roundhouse import` of their compose file lets it rotate them.

door {
  listen = ":9000"
  limits {
    idle       = "1h"
    first_byte = "1h"
  }
}

pool "engines" {
  driver = "static"

  worker "1" {
    url = "http://chat:8000"
  }

  worker "2" {
    url = "http://10.0.0.7:80"
  }
}
