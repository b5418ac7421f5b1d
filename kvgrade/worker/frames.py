"""One message on a socket: 8 bytes of length, a JSON header, then the blobs whose sizes the header states.

Invariant: every length is checked against its limit before anything is read into memory, and nothing waits past its deadline.
"""

import socket
import time
from typing import Any

from kvgrade.worker import wire

MAX_BLOB_COUNT = 4096
_HEADER = wire.MAX_HEADER + (64 << 10)  # a value and what stands around it


class Lost(Exception):
    """The other side gave no usable message. `reason`: "died", "timeout", "protocol" or "too-large"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def send(sock: socket.socket, header: dict[str, Any], blobs: list[bytes], deadline: float | None = None) -> None:
    """Send one message. Raises WireError for what is too large to travel, Lost when the other side does not take it in time."""
    text = wire.dumps({**header, "sizes": [len(blob) for blob in blobs]})
    for part in (len(text).to_bytes(8, "big") + text, *blobs):
        view = memoryview(part)
        while view:
            try:
                _wait_until(sock, deadline)
                view = view[sock.send(view[: 1 << 20]) :]
            except OSError as error:
                raise Lost("timeout" if isinstance(error, TimeoutError) else "died") from None


def receive(sock: socket.socket, max_blobs: int, deadline: float | None = None) -> tuple[dict[str, Any], list[bytes]]:
    """Receive one message with at most `max_blobs` bytes of blobs. Raises Lost."""
    length = int.from_bytes(_exactly(sock, 8, deadline), "big")
    if length > _HEADER:
        raise Lost("protocol" if length > 1 << 40 else "too-large")
    try:
        header = wire.loads(bytes(_exactly(sock, length, deadline)))
    except wire.WireError:
        raise Lost("protocol") from None
    sizes = header.get("sizes") if isinstance(header, dict) else None
    if not isinstance(sizes, list) or not all(type(n) is int and n >= 0 for n in sizes):
        raise Lost("protocol")
    if len(sizes) > MAX_BLOB_COUNT or sum(sizes) > max_blobs:
        raise Lost("too-large")
    return header, [bytes(_exactly(sock, n, deadline)) for n in sizes]


def _exactly(sock: socket.socket, n: int, deadline: float | None) -> bytearray:
    """The next n bytes; memory grows with what arrives, not with what was promised."""
    data = bytearray()
    while len(data) < n:
        try:
            _wait_until(sock, deadline)
            part = sock.recv(min(n - len(data), 1 << 20))
        except OSError as error:
            raise Lost("timeout" if isinstance(error, TimeoutError) else "died") from None
        if not part:
            raise Lost("died")
        data += part
    return data


def _wait_until(sock: socket.socket, deadline: float | None) -> None:
    if deadline is None:
        sock.settimeout(None)
        return
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    sock.settimeout(left)
