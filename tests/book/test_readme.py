"""Both READMEs: what they show is what happens, and they say the same."""

import re
from pathlib import Path

import pytest

from kvlib import kv_bytes, load_spec, memory_budget
from kvlib.cli import main
from tools.book import Book
from tools.source import LANGUAGES

ROOT = Path(__file__).resolve().parents[2]
READMES = {"en": ROOT / "README.md", "zh-TW": ROOT / "README.zh-TW.md"}
TEXT = {lang: path.read_text(encoding="utf-8") for lang, path in READMES.items()}
COMMANDS = sorted({m[1] for text in TEXT.values() for m in re.finditer(r"^\$ kvlib (.*?)(?:\s+#.*)?$", text, re.MULTILINE)})


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_chapter_is_listed_in_both_languages(lang):
    slugs = [path.stem for path in Book().sources() if path.stem != "00-start"]
    for slug in slugs:
        for other in LANGUAGES:
            assert f"(notebooks/{other}/{slug}.ipynb)" in TEXT[lang]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command, tmp_path, monkeypatch, capsys):
    (tmp_path / "path/to").mkdir(parents=True)
    (tmp_path / "path/to/config.json").write_text(
        '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,'
        ' "intermediate_size": 128, "vocab_size": 100}')
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 0
    assert capsys.readouterr().out


def test_the_output_shown_is_the_output(capsys):
    shown = re.search(r"^\$ kvlib (estimate .*?) +#.*\n((?:.+\n)+?)…", TEXT["en"], re.MULTILINE)
    main([*shown[1].split(), "--lang", "en"])
    real = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line.rstrip() for line in shown[2].splitlines()] == real[: len(shown[2].splitlines())]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_python_example_gives_what_its_comments_say(lang):
    code = re.search(r"```python\n(.*?)```", TEXT[lang], re.DOTALL)[1]
    lines = [line.partition("  #") for line in code.splitlines()]
    scope = {"load_spec": load_spec, "kv_bytes": kv_bytes, "memory_budget": memory_budget}
    scope["spec"] = load_spec("llama-2-70b")
    checked = [(eval(expression, scope), eval(comment)) for expression, _, comment in lines
               if re.fullmatch(r"[ \d_.]+", comment)]
    assert len(checked) == 2
    assert all(round(value, 2) == said for value, said in checked)


def test_the_two_have_the_same_sections_tables_and_examples():
    def skeleton(text):
        return [re.sub(r"[^#|`]+.*", "", line) for line in text.splitlines() if line.startswith(("#", "|", "```"))]

    assert skeleton(TEXT["en"]) == skeleton(TEXT["zh-TW"])
