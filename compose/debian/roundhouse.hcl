# Roundhouse. /usr/share/doc/roundhouse/full.hcl shows every setting.
# After a change: roundhouse validate /etc/roundhouse/roundhouse.hcl
#                 systemctl reload roundhouse

state_dir = "/var/lib/roundhouse"

door {
  listen = ":8000"
}

admin {
  listen = "127.0.0.1:8001"
}

# The demonstration model on the CPU, until you name a model of your own.
pool "chat" {
  workers = 2
  devices = "cpu"

  engine {
    served_model_name = ["roundhouse-demo"]
  }

  rotation {
    schedule = "0 3 * * *"
  }
}
