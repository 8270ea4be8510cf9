# Made by `roundhouse import` from nginx.conf.
# `roundhouse validate FILE` checks it, `roundhouse up -c FILE` runs it.
#
# What changed, and what was not carried over:
# - server … weight=3: the door weighs workers by what their KV cache holds, not by numbers in a
#   file.
# - server … max_fails=2: the door weighs workers by what their KV cache holds, not by numbers in
#   a file.
# - server … backup: the door weighs workers by what their KV cache holds, not by numbers in a
#   file.
# - server unix:/run/x.sock: a unix socket cannot be a worker's url; it was left out.
# - least_conn: the door chooses the worker whose KV cache will be least full.
# - listen … ssl: put the certificate into the door's tls block (cert and key).
# - include: the files that it names were not read; import `nginx -T`'s output instead.
# - proxy_buffering off is not needed: streams pass as they come.
# - The workers are run by somebody else (driver "static"): Roundhouse routes, resumes and watches,
#   and restarts nothing. `roundhouse import` of their compose file lets it rotate them.

door {
  listen = ":443"
}

pool "llm" {
  driver = "static"

  worker "1" {
    url = "http://10.0.0.2:8001"
  }

  worker "2" {
    url = "http://gpu2.lan:8002"
  }
}
