# Made by `roundhouse import` from haproxy.cfg.
# `roundhouse validate FILE` checks it, `roundhouse up -c FILE` runs it.
#
# What changed, and what was not carried over:
# - maxconn 4096: the door takes 20000 connections and queues 2048 requests; limits and queue blocks
#   change that.
# - bind … accept-proxy: name the proxy before it in the door's proxy_protocol.
# - bind … ssl: put the certificate into the door's tls block (cert and key, two files).
# - acl rules were not carried over; models choose their pool by name.
# - use_backend rules were not carried over; models choose their pool by name.
# - balance leastconn chose a server for each connection; the door chooses a worker for each
#   request, the one whose KV cache will be least full.
# - server-template w 2: 10.0.0.1:8000 may stand for several addresses; write one worker block for
#   each.
# - server … weight 2: the door weighs workers by what their KV cache holds, not by numbers in a
#   file.
# - server … maxconn 64: the door weighs workers by what their KV cache holds, not by numbers in a
#   file.
# - server … backup: every worker serves; the others carry on when one is out.
# - the proxy listened on *:8000, 127.0.0.1:9001; the door listens on the first.
# - The workers are run by somebody else (driver "static"): Roundhouse routes, resumes and watches,
#   and restarts nothing. `roundhouse import` of their compose file lets it rotate them.

door {
  listen = ":8000"
  limits {
    idle       = "30m"
    first_byte = "30m"
  }
}

pool "vllm" {
  driver = "static"

  worker "w1" {
    url = "http://10.0.0.1:8000"
  }

  worker "a" {
    url = "http://10.0.0.2:8001"
  }

  worker "b" {
    url = "http://gpu2.lan:8002"
  }
}

pool "embed" {
  driver = "static"

  worker "c" {
    url = "http://[fd00::1]:8003"
  }
}
