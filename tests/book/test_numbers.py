"""Every number the book states is computed nearby; a wrong one is caught, whatever it looks like."""

import pytest
from nbformat import v4

from tools.lint.numbers import lint_alt, lint_numbers

GB16 = ("left = 16.05", "16.05 GB\n")  # source, output


def code(source, output="", **metadata):
    outputs = [v4.new_output("stream", text=output)] if output else []
    return v4.new_code_cell(source, outputs=outputs, metadata=metadata)


def chapter(*cells):
    """A notebook of prose (text), code (``code(…)`` or (source, output)) under a title."""
    nb = v4.new_notebook()
    for cell in ("# Title", "## Learning objectives\n\nTo count.", *cells):
        if isinstance(cell, tuple):
            cell = code(*cell)
        elif isinstance(cell, str):
            cell = v4.new_markdown_cell(cell, metadata={"lang": "en"})
        nb.cells.append(cell)
    return nb


def found(nb) -> str:
    return "\n".join(map(str, lint_numbers(nb, "toy.ipynb")))


UNPROVED = {
    "decimal": "It is 3.2.",
    "three digits": "They are 900.",
    "two digits": "They are 12.",
    "with a separator, not a year": "They are 2,000.",
    "a rounded one": "About 40.",
    "small with a unit": "It is 7 GiB.",
    "small percentage": "It is 7%.",
    "small factor": "It is 7 times as large.",
    "small factor with a sign": "It is 7× as large.",
    "small factor in Chinese": "大了 7 倍。",
    "bytes": "It takes 7 bytes.",
    "time": "It takes 7 ms, or 9 s.",
    "in a formula": r"It is $2 \cdot 129$ bytes.",
    "in a formula with LaTeX separators": r"It is $342{,}177$ bytes.",
    "in a heading": "### All 24 layers",
    "in a table": "| a | b |\n|---|---|\n| 24 | x |",
    "as a percentage": "It is 87.5 %.",
    "with a scale": "70 billion of them",
    "with a power of ten": "68.98·10⁹ of them",
    "after a chapter": "In chapter 3, 24 layers.",
    "only in a name": "There are 90 of them.",
    "only in a comment": "There are 91 of them.",
    "only in a string": "There are 92 of them.",
    "only in an identifier": "There are 93 of them.",
}
PROVES_NOTHING = 'load("Llama-2-90B")  # 91\nx_93 = "92"\nprint(x_93)', "Llama-2-90B: 92\n"


@pytest.mark.parametrize("text", UNPROVED.values(), ids=UNPROVED)
def test_number_that_no_cell_computes_is_caught(text):
    assert "is not in the code or output" in found(chapter(f"## A\n\n{text}", PROVES_NOTHING))


EXEMPT = {
    "small": "Take 2 of 8 heads.",
    "year": "Read in 2023.",
    "names": "On H100-80GB, A100-40, Llama-2-70B, Qwen2.5-7B, gpt-oss-120b, v0.3, arXiv 2309.06180.",
    "products": "RTX 3090, Python 3.11, Llama 3.1, CUDA 12.8.",
    "model sizes and context lengths": "A 70B model, 4K, 8K and 128K contexts, 70B 的模型。",
    "dtypes": "fp8, int4, bf16, float64, 16-bit",
    "code span": "Write `3.27`.",
    "link": "See [section 3.27](https://example.org/3.27).",
    "references": "Chapter 12, chapters 10, 11 and 12, section 12, figure 20, 第 12 章, 第 10、11 章, 圖 20.",
    "numbered heading": "### 3.27 Title",
    "numbered list": "12. twelfth",
    "powers that define a unit": "GB is 10⁹ and GiB 2³⁰, $10^{9}$.",
    "reading time": "**You need**: nothing. **Time**: about 40 minutes.",
    "product of small numbers": "2 × 8 × d",
}


@pytest.mark.parametrize("text", EXEMPT.values(), ids=EXEMPT)
def test_what_claims_nothing_needs_no_proof(text):
    assert found(chapter(f"## A\n\n{text}")) == ""


PROVED = {
    "output": ("print(f(x))", "1.25 GiB\n", "It is 1.25 GiB."),
    "output with a ratio": ("f(x)", "0.875\n", "It is 87.5 %."),
    "constant": ("x = 327_680", "", "It is 327,680 B, $327{,}680$ B."),
    "constant times a unit": ("x = 80 * GB", "", "It is 80 GB, which are 80·10⁹ B."),
    "scaled": ("n = 70e9", "", "70 billion, 700 億, 70·10⁹."),
    "billions printed": ("f(x)", "68.98\n", "68.98 billion, $68.98 \\cdot 10^9$."),
    "scientific": ("f(x)", "3.7e-06\n", "3.7e-6"),
    "table": ("table(x)", "| n | GiB |\n|---|---|\n| 24 | 1.25 |\n", "24 take 1.25 GiB."),
    "bytes named by their unit": ("x = 65_536", "", "It is 64 KiB."),
}


@pytest.mark.parametrize(("source", "output", "text"), PROVED.values(), ids=PROVED)
def test_number_is_proved_by(source, output, text):
    assert found(chapter(f"## A\n\n{text}", (source, output))) == ""


OTHER_UNIT = {
    "output": ("f(x)", "16.05 GB\n"),
    "list": ("f(x)", "{'kv': '16.05 GB'}\n"),
    "table": ("table(x)", "| n | GB |\n|---|---|\n| 24 | 16.05 |\n"),
    "constant": ("x = 16.05 * GB", ""),
    "percent": ("f(x)", "16.05%\n"),
}


@pytest.mark.parametrize("cell", OTHER_UNIT.values(), ids=OTHER_UNIT)
def test_another_unit_proves_nothing(cell):
    assert "16.05 GiB is not in" in found(chapter("## A\n\nIt is 16.05 GiB.", cell))


def test_proof_is_near():
    far = chapter("## A", GB16, "## B", "## C\n\nIt is 16.05 GB.")
    assert "cell 6: 16.05 GB is not in the code or output of this section or the one before" in found(far)
    assert found(chapter("## A", GB16, "## B\n\nIt is 16.05 GB.")) == ""
    assert found(chapter("## A", "It is 16.05 GB.", GB16)) == ""
    assert "16.05" in found(chapter("## A\n\nIt is 16.05 GB.", "## B", GB16))


def test_sections_are_told_apart_inside_one_cell():
    assert "16.05" in found(chapter("## A", GB16, "## B\n\nx\n\n## C\n\nIt is 16.05 GB."))


CLOSING = ["Self-check", "Key takeaways", "Interview follow-ups", "Further reading", "重點整理"]


@pytest.mark.parametrize("section", CLOSING)
def test_closing_sections_look_back_at_the_whole_chapter(section):
    assert found(chapter("## A", GB16, "## B", f"## {section}\n\nIt was 16.05 GB.")) == ""
    assert "16.06" in found(chapter("## A", GB16, "## B", f"## {section}\n\nIt was 16.06 GB."))


def test_a_count_far_away_proves_no_size():
    heads, claim = ("n_heads = 64", ""), "## Self-check\n\nIt is 64 GiB."
    assert "64 GiB" in found(chapter("## A", heads, "## B", claim))
    assert found(chapter("## A", heads, "## B", claim.replace("GiB", "heads"))) == ""


def test_opening_looks_ahead_at_the_whole_chapter():
    nb = chapter("## A", "## B", GB16)
    nb.cells[0].source += "\n\n16.05 GB are left."
    nb.cells[1].source += " Down to 16.05 GB."
    assert found(nb) == ""


def test_recap_looks_at_the_whole_chapter():
    nb = chapter("## A", GB16, "## B", "## The answer\n\nIt is 16.05 GB.")
    nb.cells[-1].metadata["tags"] = ["recap"]
    assert found(nb) == ""


CAPTION = 'figure(draw(), alt=T("條", "bars"), caption=T("剩 16.05 GB", "16.05 GB left"))'
COMPUTED = 'figure(draw(), alt="bars", caption=T(f"剩 {x:.2f} GB", f"{x:.2f} GB left"))'


def test_caption_does_not_prove_itself():
    assert "cell 4: 16.05 GB is not in" in found(chapter("## A", (CAPTION, "16.05 GB left\n")))


def test_caption_with_markup_does_not_prove_itself():
    cell = CAPTION.replace("16.05 GB left", "16.05 < 17"), "16.05 &lt; 17\n"
    assert "16.05 is not in" in found(chapter("## A", cell))


def test_caption_typed_in_another_cell_does_not_prove_itself():
    words = code('words = T("剩 16.05 GB", "16.05 GB left")')
    assert "16.05 GB is not in" in found(chapter("## A", words, ("print(words)", "16.05 GB left\n")))


def test_caption_without_translation_is_looked_at():
    assert "17 is not in" in found(chapter("## A", ('figure(draw(), alt="17 bars", caption=c)', "")))


def test_caption_is_proved_by_another_output():
    assert found(chapter("## A", (CAPTION, "16.05 GB left\n"), ("left", "16.05\n"))) == ""


def test_computed_caption_is_its_own_proof():
    assert found(chapter("## A\n\n16.05 GB are left.", (COMPUTED, "16.05 GB left\n"))) == ""


def test_number_listed_in_its_cell_is_accepted():
    nb = chapter("## A\n\nThe paper has 20.4 %.")
    nb.cells[-1].metadata["numbers"] = ["20.4"]
    assert found(nb) == ""


def test_alternative_text_is_proved_near_its_figure():
    nb = chapter("## A", GB16, code("draw()", tags=["readme"]), "## B", ("y", "17.5\n"))
    assert [str(p) for p in lint_alt("bars up to 16.05", nb, "README.md")] == []
    assert "README.md: 17.5 is not in" in str(lint_alt("bars up to 17.5", nb, "README.md")[0])
