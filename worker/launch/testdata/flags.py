# Writes vllmflags.json: every flag of vLLM's serve, what follows it and its default.
# Run with the Python of an installed vLLM: python flags.py > vllmflags.json
import json

from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser

out = []
for action in make_arg_parser(FlexibleArgumentParser())._actions:
    names = [n for n in action.option_strings if not n.startswith("--no-")]
    if not names or "--help" in names:
        continue
    default = action.default
    if action.nargs == 0:
        takes, default = "switch", default if default is None else bool(default)
    else:
        takes = {"+": "list", "?": "maybe"}.get(action.nargs, "value")
    if isinstance(default, (dict, list)):
        default = json.dumps(default)
    elif default is None or not isinstance(default, (bool, int, float, str)) or default in ("", "==SUPPRESS=="):
        default = None
    out.append({"names": names, "takes": takes, "default": default})
print("[\n" + ",\n".join(json.dumps(f) for f in out) + "\n]")
