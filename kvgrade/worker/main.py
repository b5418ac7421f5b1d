"""python -I -S main.py OPTIONS: starts the answer's side. Torch and the standard library only; nothing of ours but this folder.

OPTIONS is JSON: "control", a socket's number (a fork server), or "direct", one session in this very process; "paths", where to
find torch; "uid", the user to become first; and what zygote.serve reads. It holds no secret.
"""

import json
import os
import socket
import sys
import types


def _package() -> None:
    """`kvgrade.worker` is this folder, wherever it lies; `kvgrade` is nothing else."""
    here = os.path.dirname(os.path.abspath(__file__))
    for name, path in (("kvgrade", []), ("kvgrade.worker", [here])):
        module = types.ModuleType(name)
        module.__path__ = path
        sys.modules[name] = module
    sys.modules["kvlib"] = None  # an answer does without; a sandbox does not show it at all


def main() -> None:
    """Start what the options say."""
    options = json.loads(sys.argv[1])
    sys.path += options["paths"]
    sys.dont_write_bytecode = True
    if options.get("inner"):
        os.environ["TMPDIR"] = options["scratch"]  # torch looks for such a folder as it is imported; there is no /tmp behind a wall
    _package()
    if options.get("uid") is not None:
        from kvgrade.worker import linux

        linux.become(options["uid"])
    if "control" in options:
        from kvgrade.worker import zygote

        zygote.serve(socket.socket(fileno=options["control"]), options)
        return
    from kvgrade.worker import answer

    if os.name == "nt":
        sock = socket.fromshare(sys.stdin.buffer.read(options["direct"]))
    else:
        sock = socket.socket(fileno=options["direct"])
    answer.start(sock, options["order"], options["scratch"], preloaded=False, apart=False)


if __name__ == "__main__":
    main()
