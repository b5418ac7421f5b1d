"""Byte units. GB is 10⁹ bytes, GiB is 2³⁰ bytes; every label says which one it means."""

KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
KiB, MiB, GiB, TiB = 2**10, 2**20, 2**30, 2**40

UNITS = {
    "B": 1, "KB": KB, "MB": MB, "GB": GB, "TB": TB,
    "KiB": KiB, "MiB": MiB, "GiB": GiB, "TiB": TiB,
}  # fmt: skip


def format_bytes(n: int, unit: str | None = None, digits: int = 2) -> str:
    """Bytes as text in `unit`, or in the largest binary unit that keeps the number above 1.

    >>> format_bytes(1_342_177_280)
    '1.25 GiB'
    >>> format_bytes(137_953_296_384, "GB")
    '137.95 GB'

    Raises ValueError for a unit that is not in `UNITS`.
    """
    if unit is None:
        unit = next((u for u in ("TiB", "GiB", "MiB", "KiB") if abs(n) >= UNITS[u]), "B")
    if unit not in UNITS:
        raise ValueError(f"unit is {unit!r}; expected one of {', '.join(UNITS)}")
    return f"{n:,} B" if unit == "B" else f"{n / UNITS[unit]:,.{digits}f} {unit}"
