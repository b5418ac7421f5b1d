"""Make the small Chinese font that the book's figures are drawn with.

    python tools/make_font.py /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc

Keeps the characters that a Traditional Chinese text about computing needs, drops
everything that matplotlib does not read (layout features, vertical metrics, hints)
and gives the result its own name: a changed font must not pass for the original.
Same source font, same fontTools: same bytes. Run it again when a test says that
a figure uses a character the font lacks.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import fontTools
from fontTools import subset
from fontTools.ttLib import TTCollection, TTFont

FAMILY = "KVBook Sans TC"
POSTSCRIPT_NAME = FAMILY.replace(" ", "") + "-Regular"
SOURCE_FAMILY = "Noto Sans CJK TC"
FONTS = Path(__file__).parents[1] / "kvlib" / "fonts"
FONT_FILE = POSTSCRIPT_NAME + ".otf"

# A CJK font draws these as wide as a Han character, or superscripts at two heights: left to DejaVu Sans.
LEFT_OUT = set(map(ord, "·×¹²³⁰⁴⁵⁶⁷⁸⁹⁻⁺ⁿ…"))
ASCII_AND_LATIN_1 = [*range(0x20, 0x7F), *range(0xA0, 0x100)]
GREEK = [code for code in (*range(0x391, 0x3AA), *range(0x3B1, 0x3CA)) if code != 0x3A2]
SIGNS = ("–—‘’“”•…′″⁰⁴⁵⁶⁷⁸⁹⁻⁺ⁿ₀₁₂₃₄₅₆₇₈₉←↑→↓↔⇐⇒⇔∂∅∆∇∈∏∑−√∝∞∩∪∫≈≠≡≤≥≪≫⊂⊕⊗⋅⋯⌈⌉⌊⌋"
         "①②③④⑤⑥⑦⑧⑨⑩─│■□▲△▶▷▼▽◀◆◇○●★☆✓✗"
         "、。〈〉《》「」『』【】！（），．：；？～％＋－＝／")
BEYOND_LEVEL_1 = "閾饋熵"  # of our field, though Big5 counts them as rare: 閾值, 前饋, 熵

README = """\
# {family}

`{file}` draws the Chinese in the book's figures, so that they look the same on every
machine. It is a subset of {source} Regular ({version}),
made with fontTools {fonttools} by `tools/make_font.py`, which also wrote this file: {characters}
characters, among them the 5,401 Han characters of Big5 level 1. It is renamed because it
is changed. Copyright and licence (SIL Open Font License 1.1): `OFL.txt`.

Not in the source font, left to DejaVu Sans: {missing}

SHA-256 {digest}
"""


def big5_level_1() -> list[int]:
    """Code points of the 5,401 characters that Big5 calls frequently used (A440–C67E)."""
    rows = range(0xA4, 0xC7)
    columns = [*range(0x40, 0x7F), *range(0xA1, 0xFF)]
    codes = ((row, column) for row in rows for column in columns if (row, column) <= (0xC6, 0x7E))
    return [ord(bytes(code).decode("big5")) for code in codes]


def wanted() -> set[int]:
    """Every code point that the font should have."""
    every = {*ASCII_AND_LATIN_1, *GREEK, *map(ord, SIGNS + BEYOND_LEVEL_1), *big5_level_1()}
    return every - LEFT_OUT


def traditional_chinese(path: Path) -> TTFont:
    """The Traditional Chinese face of a Noto Sans CJK collection.

    Raises ValueError where the file holds no such face.
    """
    faces = TTCollection(path, lazy=True).fonts
    names = [face["name"].getDebugName(1) for face in faces]
    if SOURCE_FAMILY not in names:
        raise ValueError(f"{path} holds {names}, but not {SOURCE_FAMILY!r}; "
                         "give NotoSansCJK-Regular.ttc (Debian: fonts-noto-cjk).")
    return faces[names.index(SOURCE_FAMILY)]


def shrink(font: TTFont, code_points: set[int]) -> None:
    """Reduce `font` in place to `code_points` and to the tables matplotlib reads."""
    options = subset.Options(
        hinting=False, desubroutinize=False, layout_features=[], notdef_outline=True,
        name_IDs=[0, 5, 7, 8, 9, 10, 13, 14], name_languages=[0x409],
        drop_tables=["BASE", "GDEF", "GPOS", "GSUB", "VORG", "vhea", "vmtx"],
    )
    worker = subset.Subsetter(options)
    worker.populate(unicodes=code_points)
    worker.subset(font)
    font.recalcTimestamp = False  # or each run writes its own date


def rename(font: TTFont) -> None:
    """Give `font` our name; its copyright, trademark and licence records stay."""
    own = {1: FAMILY, 2: "Regular", 3: f"KVBook;{POSTSCRIPT_NAME}", 4: FAMILY, 6: POSTSCRIPT_NAME}
    for name_id, text in own.items():
        font["name"].setName(text, name_id, 3, 1, 0x409)
    cff = font["CFF "].cff
    cff.fontNames = [POSTSCRIPT_NAME]
    top = cff.topDictIndex[0]
    top.FullName = top.FamilyName = FAMILY
    for part in top.FDArray:
        part.FontName = POSTSCRIPT_NAME + "-" + part.FontName.rsplit("-", 1)[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="path of NotoSansCJK-Regular.ttc")
    parser.add_argument("--into", type=Path, default=FONTS, help="folder to write into")
    arguments = parser.parse_args()

    font = traditional_chinese(arguments.source)
    version = font["name"].getDebugName(5)
    missing = wanted() - font.getBestCmap().keys()
    shrink(font, wanted())
    rename(font)
    arguments.into.mkdir(parents=True, exist_ok=True)
    target = arguments.into / FONT_FILE
    font.save(target, reorderTables=True)

    readme = README.format(
        file=FONT_FILE, family=FAMILY, source=SOURCE_FAMILY, version=version,
        fonttools=fontTools.version, characters=len(font.getBestCmap()),
        missing=" ".join(map(chr, sorted(missing))),
        digest=hashlib.sha256(target.read_bytes()).hexdigest(),
    )
    (arguments.into / "README.md").write_text(readme, encoding="utf-8")
    print(readme)


if __name__ == "__main__":
    main()
