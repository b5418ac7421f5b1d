"""The shipped font: it has what the book draws, under its own name and licence."""

import hashlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from fontTools.ttLib import TTFont
from matplotlib.font_manager import findfont, fontManager

from kvlib import figures, style

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "make_font.py"
README = (style.FONT_FILE.parent / "README.md").read_text(encoding="utf-8")
DEBIAN_FONT = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")
CODE_CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
ABSENT = "龘"  # real, rare, in no font of ours


@pytest.fixture(scope="module")
def font():
    return TTFont(style.FONT_FILE)


@pytest.fixture(scope="module")
def drawable(font):
    fallback = TTFont(findfont("DejaVu Sans")).getBestCmap()
    return {chr(code) for code in font.getBestCmap().keys() | fallback.keys()}


def code_of_the_book():
    for path in sorted((ROOT / "kvlib").glob("**/*.py")):
        yield path, path.read_text(encoding="utf-8")
    for path in sorted(ROOT.glob("*/src/*.md")):
        yield path, "\n".join(CODE_CELL.findall(path.read_text(encoding="utf-8")))


def test_every_character_in_the_books_code_can_be_drawn(drawable):
    for path, code in code_of_the_book():
        missing = {character for character in code if character.isprintable()} - drawable
        assert not missing, f"{path.relative_to(ROOT)}: add {missing} in tools/make_font.py"


def test_the_font_holds_what_its_tool_wants(font):
    wanted = runpy.run_path(str(TOOL))["wanted"]()
    missing = set(map(chr, wanted - font.getBestCmap().keys()))
    declared = re.search("left to DejaVu Sans: (.*)", README)[1].split()
    assert missing == set(declared)


def test_big5_level_1_is_complete(font):
    assert {"的", "一", "乙", "籲"} < {chr(code) for code in font.getBestCmap()}
    assert sum(0x4E00 <= code <= 0x9FFF for code in font.getBestCmap()) >= 5401


def test_a_changed_font_carries_its_own_name(font):
    names = {record.nameID: str(record) for record in font["name"].names}
    cff = font["CFF "].cff
    top = cff.topDictIndex[0]
    own = [names[1], names[3], names[4], names[6], *cff.fontNames, top.FullName, top.FamilyName,
           *(part.FontName for part in top.FDArray)]
    assert all("KVBook" in name and "Noto" not in name for name in own), own


def test_copyright_and_licence_travel_with_the_font(font):
    names = {record.nameID: str(record) for record in font["name"].names}
    assert "Adobe" in names[0]
    assert "SIL Open Font License" in names[13]
    licence = (style.FONT_FILE.parent / "OFL.txt").read_text(encoding="utf-8")
    assert "Adobe" in licence.splitlines()[0]
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert "may use the Reserved Font" in licence


def test_the_font_stays_small():
    assert style.FONT_FILE.stat().st_size <= 1_400_000


def test_the_readme_describes_this_very_font():
    assert hashlib.sha256(style.FONT_FILE.read_bytes()).hexdigest() in README


@pytest.mark.skipif(not DEBIAN_FONT.exists(), reason="needs Debian's fonts-noto-cjk")
def test_the_tool_makes_this_very_font(tmp_path):
    subprocess.run([sys.executable, TOOL, DEBIAN_FONT, "--into", tmp_path],
                   check=True, capture_output=True)
    made = (tmp_path / "README.md").read_text(encoding="utf-8")
    if made.split("by `tools")[0] != README.split("by `tools")[0]:
        pytest.skip("another version of the source font or of fontTools")
    assert (tmp_path / style.FONT_FILE.name).read_bytes() == style.FONT_FILE.read_bytes()


def test_chinese_is_drawn_where_no_font_is_installed():
    ours = ("matplotlib/mpl-data", "kvlib/fonts")
    fontManager.ttflist[:] = [entry for entry in fontManager.ttflist
                              if any(part in Path(entry.fname).as_posix() for part in ours)]
    style.use("zh-TW")
    fig = plt.figure()
    fig.text(0.1, 0.5, "每個 token 的 KV 快取：⌈N ÷ 16⌉ × 2.5 KiB ≈ 10⁹ − 1")
    assert figures.png(fig).startswith(b"\x89PNG")


@pytest.mark.parametrize("text, code", [
    (ABSENT, str(ord(ABSENT))),
    (f"$x$ {ABSENT}", r"U\+9f98"),
    (r"$\mathrm{快}$", r"U\+5feb"),  # matplotlib's math fonts know no Chinese
])
def test_a_character_that_no_font_has_is_an_error_that_says_which(text, code):
    style.use("zh-TW")
    fig = plt.figure()
    fig.text(0.1, 0.5, text)
    with pytest.raises(ValueError, match=code):
        figures.png(fig)
    assert not plt.get_fignums()


def test_bold_titles_do_not_complain(caplog):
    style.use("zh-TW")
    fig, ax = plt.subplots()
    ax.set_title("粗體 bold", weight="bold")
    figures.png(fig)
    assert caplog.records == []
