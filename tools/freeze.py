"""python -m tools.freeze: write constraints.txt from what is installed here.

Local versions (torch's ``+cpu``) are cut, so that one file serves every build of a package.
Packages that exist on other systems only (CUDA's, pywinpty, appnope) stay unpinned.
"""

from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name

CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"
NOT_OURS = {"kvlib", "pip", "setuptools", "wheel"}
HEADER = """\
# The exact versions CI runs with, for `pip install -c constraints.txt`.
# Written by `make freeze`; to move a pin: pip install the version you want, then make freeze.
"""


def pins() -> list[str]:
    """``name==version`` for everything installed, in order of name."""
    versions = {canonicalize_name(d.metadata["Name"]): d.version for d in distributions()}
    return sorted(
        f"{name}=={v.partition('+')[0]}" for name, v in versions.items() if name not in NOT_OURS
    )


if __name__ == "__main__":
    CONSTRAINTS.write_text(HEADER + "\n".join(pins()) + "\n", encoding="utf-8")
    print(f"{CONSTRAINTS.name}: {len(pins())} packages")
