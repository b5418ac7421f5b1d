"""A CSV that a teacher exported, changed in single fields and nowhere else.

Invariant: every byte outside the fields that are set stays as it was: encoding, quoting, line ends, rows and columns.
"""

import codecs
import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from kvlib.errors import SpecError

MAX_BYTES = 50_000_000
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_ENCODINGS = ("utf-8", "cp950", "cp1252")


@dataclass
class SheetFile:
    """Rows of raw fields. `value` and `set` speak of fields as they read, without their quotes."""

    name: str
    bom: bytes
    encoding: str
    delimiter: str
    rows: list[list[str]]  # raw
    ends: list[str]  # of each row

    @classmethod
    def read(cls, path: Path) -> "SheetFile":
        """Parse a CSV, tabs and semicolons included. Raises SpecError."""
        try:
            data = path.read_bytes() if path.stat().st_size <= MAX_BYTES else None
        except OSError as error:
            raise SpecError(f"{path} cannot be read: {error.strerror}; give the CSV that your LMS exported") from None
        if data is None:
            raise SpecError(f"{path} is larger than {MAX_BYTES:,} bytes; give the CSV that your LMS exported")
        if data[:4] == b"PK\x03\x04":
            raise SpecError(f"{path} is an Excel workbook; export CSV")
        bom, encoding = next(((b, e) for b, e in _BOMS if data.startswith(b)), (b"", ""))
        text, encoding = _decoded(data[len(bom) :], (encoding,) if encoding else _ENCODINGS)
        first = text.partition("\n")[0]
        delimiter = max(",;\t", key=first.count)
        rows, ends = _split(text, delimiter)
        read = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        sheet = cls(path.name, bom, encoding, delimiter, rows, ends)
        if [[sheet.value(r, c) for c in range(len(row))] for r, row in enumerate(rows)] != [row or [""] for row in read]:
            raise SpecError(f"{path} is quoted in a way that cannot be kept; export it again as CSV")
        return sheet

    def value(self, row: int, column: int) -> str:
        """A field as it reads; "" where the row is shorter."""
        raw = self.rows[row][column] if column < len(self.rows[row]) else ""
        return raw[1:-1].replace('""', '"') if raw.startswith('"') else raw

    def header(self) -> list[str]:
        """The first row as it reads."""
        return [self.value(0, column).strip() for column in range(len(self.rows[0]))] if self.rows else []

    def set(self, row: int, column: int, value: str) -> None:
        """Change a field; quoted where it was quoted."""
        fields = self.rows[row]
        fields += [""] * (column + 1 - len(fields))
        fields[column] = f'"{value}"' if fields[column].startswith('"') else value

    def as_bytes(self) -> bytes:
        """The file again."""
        text = "".join(self.delimiter.join(row) + end for row, end in zip(self.rows, self.ends, strict=True))
        return self.bom + text.encode(self.encoding)


def _decoded(data: bytes, encodings: tuple[str, ...]) -> tuple[str, str]:
    for encoding in encodings:
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    raise SpecError(f"the sheet is not text in {', '.join(encodings)}; export it again as CSV (UTF-8)")


def _split(text: str, delimiter: str) -> tuple[list[list[str]], list[str]]:
    """Raw fields by row, and the end of each row."""
    field = re.compile(rf'("(?:[^"]|"")*"|[^{re.escape(delimiter)}\r\n]*)({re.escape(delimiter)}|\r\n|\n|\r|\Z)')
    rows, ends, row, position = [], [], [], 0
    while position < len(text) or row:
        match = field.match(text, position)
        if match is None:
            raise SpecError("the sheet has a quote in the middle of a field; export it again as CSV")
        row.append(match[1])
        position = match.end()
        if match[2] != delimiter:
            rows.append(row)
            ends.append(match[2])
            row = []
    return rows, ends
