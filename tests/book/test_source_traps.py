"""Each trap in a chapter source is caught when someone walks into it again."""

from dataclasses import replace

import pytest

from tools.lint import lint_source
from tools.source import SourceError


def problems(source) -> str:
    return "\n".join(map(str, lint_source(source, "01-toy.md")))


def test_the_toy_chapter_is_clean(toy_source):
    assert problems(toy_source()) == ""


TWINS = {
    "deleted twin": ("The Chinese edition", '\n+++ {"lang": "en"}\n\nTwice', "no zh-TW twin"),
    "number": ("take 1.25 GiB", "take 1.52 GiB", "only here `1.25 GiB`; only there `1.52 GiB`"),
    "unit": ("take 1.25 GiB", "take 1.25 GB", "only here `1.25 GiB`; only there `1.25 GB`"),
    "power": ("10⁹ at", "10⁶ at", "only here `1000000`; only there `1000000000`"),
    "raised letter": ("None yet.", "O(n²)", "numbers differ"),
    "paragraph": ("None yet.", "None yet.\n\nNot one.", "paragraphs differ"),
    "list item": ("None yet.", "None yet.\n\n- a", "list items differ"),
    "table row": ("None yet.", "| a |\n|---|", "table rows differ"),
    "scale": ("70 billion", "70 million", "only here `70000000`; only there `70000000000`"),
    "formula": (r"佔 $2 \cdot 128", r"佔 $2 \cdot 182", "formulas differ"),
    "link": ("(../zh-TW/01-toy.ipynb)", "(../zh-TW/02-toy.ipynb)", "links differ"),
    "heading level": ("## Self-check", "### Self-check", "headings differ"),
    "code span": ("see `kv_bytes`", "see `kv_byte`", "code spans differ"),
    "fold": ("<details><summary>Answer</summary>", "<div>", "folds differ"),
    "number in T": ('T("共", "in all")', 'T("共 8", "in all 9")', "numbers differ in T"),
    "unit in T": ('T("共", "in all")', 'T("共 8 GB", "in all 8 GiB")', "numbers differ in T"),
    "T swapped": ('T("共", "in all")', 'T("in all", "共")', "Chinese first"),
}
CHINESE = {
    "banned word": ("位元組要數", "字節要數", "字節 is not used in Taiwan; write 位元組"),
    "banned word in code": ('T("共", "in all")', 'T("內存", "in all")', "內存 is not used"),
    "banned word in a string": ('LANG = "en"', 'LANG = "en"\nx = "內存"', "內存 is not used"),
    "banned word in an f-string": ('LANG = "en"', 'LANG = "en"\nx = f"{1}內存"', "內存 is not used"),
    "banned word in a comment": ('LANG = "en"', 'LANG = "en"  # 內存', "內存 is not used"),
    "banned word in a code span": ("暫無。", "`內存`。", "內存 is not used"),
    "banned word in English prose": ("None yet.", "None yet (內存).", "內存 is not used"),
    "simplified word": ("暫無。", "暂無。", "暂 is a simplified character"),
    "simplified character that Big5 has": ("暫無。", "网路。", "网 is a simplified character"),
    "simplified word in a comment": ('LANG = "en"', 'LANG = "en"  # 缓存', "缓 is a simplified character"),
    "false friend": ("暫無。", "暫無推理。", "推理 is not used in Taiwan; write 推論"),
    "false friend for sequence": ("暫無。", "暫無串列。", "串列 is not used in Taiwan; write 序列"),
    "half-width comma": ("位元組}$，4,096", "位元組}$，個,4,096", "write ，"),
    "half-width parenthesis": ("暫無。", "暫無(none)。", "write （"),
    "half-width parenthesis after a space": ("暫無。", "暫無 (none)。", "write （"),
    "half-width colon before a space": ("暫無。", "GQA: 暫無。", "write ："),
    "missing space beside emphasis": ("暫無。", "**暫無**none。", "no space between"),
    "missing space": ("一個 token", "一個token", "no space between Chinese and Latin"),
}
CODE = {
    "semicolon": ("2 * 128\n```", "2 * 128;\n```", "trailing ;"),
    "semicolon before a comment": ("2 * 128\n```", "2 * 128;  # quiet\n```", "trailing ;"),
    "semicolon under a magic": ("2 * 128\n```", "%pwd\n2 * 128;\n```", "trailing ;"),
    "long cell": ("2 * 128\n```", "2 * 128\n" * 9 + "```", "12 lines, allowed 10"),
    "wide line": ("2 * 128\n```", f"x = '{'字' * 40}'\n```", "columns, allowed 80"),
    "two prints": ("2 * 128\n```", "print(1)\nprint(2)\n```", "2 prints"),
    "not Python": ("2 * 128\n```", "2 *\n```", "not Python"),
    "hidden from nbval": ("2 * 128\n```", "# NBVAL_SKIP\n```", "hides this cell from nbval"),
    "tag that hides": ("[widget]", "[nbval-skip]", "hides this cell from nbval"),
}
ANATOMY = {
    "missing section": ("## Key takeaways", "## Takeaways", "no section `## Key takeaways`"),
    "two titles": ("# Compute a cache", "# Compute\n\n# A cache", "has 2 titles"),
    "directive": ("None yet.", ":::{note}\nNone yet.\n:::", "MyST directive :::{note}"),
    "role": ("None yet.", "See {ref}`here`.", "MyST directive {ref}"),
}
TRAPS = TWINS | CHINESE | CODE | ANATOMY


@pytest.mark.parametrize(("old", "new", "message"), TRAPS.values(), ids=TRAPS)
def test_lint_catches(toy_source, old, new, message):
    found = problems(toy_source(old, new))
    assert message in found
    assert "01-toy.md" in found


def test_long_cells_throughout_are_caught_by_their_median(toy_source):
    cell = "\n```{code-cell} ipython3\n" + "x = 1\n" * 6 + "```\n"
    assert "median code cell has 6 lines" in problems(
        toy_source("None yet.\n", "None yet.\n" + cell * 9)
    )


def as_appendix(source):
    return replace(source, path=source.path.with_name("01a-toy.md"))


def test_an_appendix_leaves_exercises_and_interview_to_its_chapter(toy_source):
    less = toy_source("## Exercises\n\nCount to ten by hand.\n\n", "")
    assert "has no section `## Exercises`" in problems(less)
    assert "has no section" not in problems(as_appendix(less))


def test_an_appendix_has_all_other_common_sections_in_order(toy_source):
    renamed = toy_source("## Key takeaways", "## Takeaways")
    assert "no section `## Key takeaways`" in problems(as_appendix(renamed))
    swapped = toy_source("## Self-check", "## Further reading")
    assert "no section `## Self-check`" in problems(as_appendix(swapped))


REFUSED = {
    "prose without language": ('+++ {"lang": "en"}\n\n## Self', "+++\n\n## Self", "no language"),
    "unknown language": ('{"lang": "en"}', '{"lang": "fr"}', "language 'fr'"),
    "misspelt metadata": (
        '{"lang": "en"}',
        '{"lang": "en", "number": []}',
        "unknown metadata number",
    ),
    "cell swallowed by HTML": (
        "</details>\n\n## Exercises",
        '</details>\n+++ {"lang": "en"}\n\n## Exercises',
        "empty line",
    ),
    "no parameters cell": (":tags: [parameters]", "", "tagged `parameters`"),
    "LANG not set": ('LANG = "en"', 'LANGUAGE = "en"', "the line LANG"),
}


@pytest.mark.parametrize(("old", "new", "message"), REFUSED.values(), ids=REFUSED)
def test_source_is_refused_with_its_place(toy_source, old, new, message):
    with pytest.raises(SourceError, match=r"01-toy\.md:\d+: ") as refusal:
        toy_source(old, new)
    assert message in str(refusal.value)


ALLOWED = {
    "letters before numbers": ("暫無。", "A. 暫無。"),
    "parentheses of a formula": ("暫無。", "只有 O(N) 一項。"),
    "mathematical function": ("位元組要數", "數學函數"),
    "reasoning": ("位元組要數", "推理模型要數"),
    "linked list": ("位元組要數", "鏈結串列要數"),
    "words that only meet": ("位元組要數", "放進快取內存放"),
    "Chinese in formulas": (r"\text{ 位元組}", r"\text{ 位元組t}"),
    "text in formulas": (r"\text{ bytes}", r"\text{ B}"),
    "spaces in formulas": (r"$2 \cdot 128 \text{ bytes}$", r"$2\cdot128\,\text{ bytes}$"),
    "semicolon in a string": ("2 * 128\n```", "';'  # ;\n```"),
    "semicolon between statements": ("2 * 128\n```", "x = 1; x\n```"),
    "line break in a number": ("Why 70 billion bytes?", "Why 70\nbillion bytes?"),
    "a unit named in each language": ("2 × 128 bytes", "2 × 128 B"),
    "milliseconds in Chinese": ('T("共", "in all")', 'T("共 8 毫秒", "in all 8 milliseconds")'),
    "thousands separators": ("4,096 of them", "4096 of them"),
}


@pytest.mark.parametrize(("old", "new"), ALLOWED.values(), ids=ALLOWED)
def test_lint_does_not_cry_wolf_over(toy_source, old, new):
    assert problems(toy_source(old, new)) == ""
