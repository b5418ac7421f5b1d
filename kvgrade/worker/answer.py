"""The process of one answer: takes requests from the socket, has the host do them, sends the replies.

It knows no verdict, no test and no seed; an answer that takes it over can change what values it sends, and nothing else.
"""

import os
import socket
from typing import Any, NoReturn

from kvgrade.worker import frames, inner, limits, wire
from kvgrade.worker.host import Host


def preload() -> None:
    """Import what answers need and run it once, on one thread: a fork takes no other thread along."""
    import torch

    from kvgrade.worker.work import counting

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    x = torch.ones(1, 1, 2, 2)
    torch.nn.functional.scaled_dot_product_attention(x, x @ x, x.softmax(-1))
    with counting({"lines": None}):  # the first use of a dispatch mode imports torch._dynamo: 2.5 s
        x @ x


def start(sock: socket.socket, order: dict[str, Any], scratch: str, preloaded: bool, apart: bool) -> NoReturn:
    """Confine this process, tell the grader that it is ready, or why not, and serve until the grader hangs up."""
    try:
        try:
            if not preloaded:
                preload()
            if os.name == "posix" and os.getsid(0) != os.getpid():
                os.setsid()
            now = limits.in_use()  # before /proc may be out of sight
            if apart:
                inner.enter(scratch, order["limits"]["disk"])
            sock = limits.only_file(sock)
            limits.confine(order, scratch, now)
        except BaseException as error:
            frames.send(sock, {"failed": f"{type(error).__name__}: {error}"[:500]}, [])
            raise
        frames.send(sock, {"ready": True}, [])
        serve(sock, order["limits"])
    except BaseException:
        os._exit(1)
    os._exit(0)


def serve(sock: socket.socket, most: dict[str, Any]) -> None:
    """Serve requests; raises frames.Lost when the grader hangs up."""
    host = Host()
    while True:
        message, blobs = frames.receive(sock, wire.MAX_BLOBS)
        reply, out = host.handle(message["request"], blobs)
        if sum(map(len, out)) > most["reply"] or len(out) > frames.MAX_BLOB_COUNT:
            reply, out = _too_large(f"tensors of more than {most['reply']:,} bytes"), []
        header = {"id": message["id"], "reply": reply}
        try:
            frames.send(sock, header, out)
        except wire.WireError as error:
            frames.send(sock, {**header, "reply": _too_large(str(error))}, [])


def _too_large(text: str) -> dict[str, Any]:
    return {"error": {"type": "WireError", "bases": ["WireError"], "text": text, "trace": ""}}
