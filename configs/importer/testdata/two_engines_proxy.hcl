# Made by `roundhouse import` from haproxy.cfg.
# `roundhouse validate FILE` checks it, `roundhouse up -c FILE` runs it.
#
# What changed, and what was not carried over:
# - log: the door writes one line a request, without its prompt; log { access = false } ends that.
# - maxconn 1024: the door takes 20000 connections and queues 2048 requests; limits and queue blocks
#   change that.
# - stats socket: `roundhouse drain`, `undrain` and `ps` take its place, on 127.0.0.1 alone.
# - mode tcp: the door speaks HTTP, so a worker that fails is tried elsewhere and a client gets an
#   answer, not a closed socket.
# - balance roundrobin chose a server for each connection; the door chooses a worker for each
#   request, the one whose KV cache will be least full.
# - default-server inter 2s rise 2 fall 3 slowstart 10s: a worker is used once it is healthy and has
#   answered one real request, left when it refuses connections or computes nothing, and after a
#   start comes to its full share within slow_start, 30s unless the door block says otherwise.
# - The workers are run by somebody else (driver "static"): Roundhouse routes, resumes and watches,
#   and restarts nothing. `roundhouse import` of their compose file lets it rotate them.

door {
  listen = ":8000"
  limits {
    idle       = "15m"
    first_byte = "15m"
  }
}

pool "engines" {
  driver = "static"

  worker "vllm_1" {
    url = "http://127.0.0.1:8008"
  }

  worker "vllm_2" {
    url = "http://127.0.0.1:8009"
  }
}
