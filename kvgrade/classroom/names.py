"""Names that learners chose, made safe to show and to store under.

Invariant: `visible` text has no control character and no character that turns the direction of what follows; no two keys share a
`file_name`, on any file system.
"""

import hashlib
import re
import unicodedata
from pathlib import Path

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def visible(text: str) -> str:
    """The text with control, direction and unassigned characters written as \\uXXXX."""
    return "".join(c if c == " " or unicodedata.category(c)[0] not in "CZ" or c == "\u3000" else _escape(c) for c in text)


def file_name(key: str) -> str:
    """A file name for a key: what can be read of it, and a digest that keeps it apart from every other."""
    readable = re.sub(r"[\W_]+", "-", unicodedata.normalize("NFC", key)).strip("-")[:28].strip("-")
    return f"{readable}-{digest(key.encode('utf-8', 'surrogatepass'))[:20]}".lstrip("-")


def spreadsheet(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    text = visible(text)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def same(text: str) -> str:
    """What two ways of writing one name have in common."""
    return unicodedata.normalize("NFC", text).strip()


def loose(text: str) -> str:
    """A name without case, spaces and punctuation: as LMS archives write it."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).casefold()


def digest(data: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(data).hexdigest()


def write(path: Path, data: bytes) -> bool:
    """Write a file in one step; nothing happens when it holds these bytes already. Returns whether it was written."""
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    part.replace(path)
    return True


def _escape(c: str) -> str:
    return f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"
