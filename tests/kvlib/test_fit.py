"""The inverse questions, against brute force: the answer fits, and one more does not."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlib import GB, Layer, ModelSpec, SpecError, i18n, kv_bytes, load_spec, memory_budget
from kvlib.cli import main
from kvlib.fit import fewest_cards, longest, longest_sequence, readings

pytestmark = pytest.mark.usefixtures("english")


layers = st.lists(
    st.builds(
        Layer,
        n_kv_heads=st.sampled_from([0, 1, 2, 4]),
        k_dim=st.integers(0, 3),
        v_dim=st.integers(0, 3),
        index_bytes=st.integers(0, 3),
        window=st.none() | st.integers(0, 30),
        chunk=st.none() | st.integers(1, 30),
        cross_tokens=st.integers(0, 3),
        state_bytes=st.integers(0, 20),
    ),
    min_size=1,
    max_size=5,
).map(lambda found: ModelSpec("toy", tuple(found), n_heads=4, hidden_size=1))


@settings(max_examples=150, deadline=None)
@given(layers, st.integers(0, 500), st.integers(1, 4), st.sampled_from(["bf16", "fp8", "fp8/int4"]), st.sampled_from([1, 2, 4]))
def test_longest_is_the_last_length_that_fits(spec, nbytes, batch, kv_dtype, tp):
    fitting = [n for n in range(600) if kv_bytes(spec, n, batch, kv_dtype, tp) <= nbytes]
    found = longest(spec, nbytes, batch, kv_dtype, tp)
    if found is None:
        assert len(fitting) == 600  # one byte per token at least would have stopped it
    else:
        assert found == (fitting[-1] if fitting else 0)


@pytest.mark.parametrize("model", ["llama-2-70b", "gemma-3-27b", "deepseek-v3", "jamba-v0.1", "mistral-7b-v0.1", "gemma-3n-e4b"])
@pytest.mark.parametrize("sequences", [1, 3])
def test_the_longest_sequence_of_a_budget_fills_it(model, sequences):
    b = memory_budget(load_spec(model), "h200-141gb", 16 if model == "deepseek-v3" else 4)
    found = longest_sequence(b, sequences)
    if found is None:
        assert model == "mistral-7b-v0.1", "all of its layers have a window"
        assert b.max_sequences(10**9) >= sequences
    else:
        assert b.max_sequences(found) >= sequences > b.max_sequences(found + 1)


def test_llama_2_70b_on_two_h100():
    # 160e9 − 137,953,296,384 of weights − 6e9 of runtime = 16,046,703,616 B, of 327,680 B per token
    assert longest_sequence(memory_budget(load_spec("llama-2-70b"), "h100-80gb", 2)) == 48_970


def test_what_does_not_fit_has_no_tokens():
    spec = load_spec("llama-2-70b")
    assert longest_sequence(memory_budget(spec, "t4-16gb")) == 0
    assert longest(load_spec("jamba-v0.1"), 8_716_288 - 1) == 0, "its state alone is larger"
    assert longest(load_spec("jamba-v0.1"), 8_716_288 + 16_384) == 1


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40_000), st.integers(1, 40), st.sampled_from(["decimal", "binary", "reported"]),
       st.sampled_from(["llama-2-70b", "deepseek-v3", "qwen2.5-7b", "falcon-7b"]))  # fmt: skip
def test_fewest_cards_is_the_first_number_that_holds_them(n_tokens, sequences, capacity, model):
    spec = load_spec(model)
    found = fewest_cards(spec, "h100-80gb", n_tokens, sequences, capacity=capacity)
    holds = []
    for n in range(1, spec.n_heads + 1):
        try:
            if memory_budget(spec, "h100-80gb", n, capacity=capacity).max_sequences(n_tokens) >= sequences:
                holds.append(n)
        except SpecError:
            continue  # the heads cannot be split over n cards
    assert found == (holds[0] if holds else None)


def test_a_model_without_heads_may_take_any_number_of_cards():
    spec = ModelSpec("state only", (Layer(state_bytes=10 * GB),), n_heads=0, hidden_size=1)
    assert fewest_cards(spec, "t4-16gb", 1, 1, weight_bytes=0) == 1
    # n cards of 16 GB keep 3 GB of runtime and a whole state of 10 GB each: 3 GB per card are left for the weights
    assert fewest_cards(spec, "t4-16gb", 1, 1, weight_bytes=30 * GB) == 10


def test_readings_are_all_capacities_at_all_utilizations():
    found = readings(load_spec("llama-2-70b"), "h100-80gb", 2, utilizations=(1.0, 0.9))
    assert [(r.capacity, r.utilization) for r in found] == [
        (c, u) for c in ("decimal", "reported", "binary") for u in (1.0, 0.9)]  # fmt: skip
    assert [r.budget.max_sequences(4096) for r in found] == [11, 0, 19, 6, 20, 7]


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda spec: longest(spec, -1), "nbytes"),
        (lambda spec: longest(spec, 1, batch=0), "batch"),
        (lambda spec: fewest_cards(spec, "h100-80gb", 0), "n_tokens"),
        (lambda spec: fewest_cards(spec, "h100", 1), "h100"),
        (lambda spec: fewest_cards(spec, "h100-80gb", 1, 0), "sequences"),
        (lambda spec: readings(spec, "h100-80gb", 1, utilizations=(1.5,)), "utilization"),
    ],
)
def test_a_wrong_argument_is_named(call, names):
    with pytest.raises(SpecError, match=names):
        call(load_spec("llama-2-70b"))


def fitted(capsys, *args: str) -> dict:
    main(["fit", *args, "--json"])
    return json.loads(capsys.readouterr().out)


def test_the_command_says_what_the_library_says(capsys):
    answer = fitted(capsys, "llama-2-70b", "--gpus", "2", "--tokens", "5000", "-s", "20", "--utilization", "0.95", "--block-size", "16",
                    "--kv-dtype", "fp8", "--weight-dtype", "int8", "--runtime-gb", "2")  # fmt: skip
    options = {"kv_dtype": "fp8", "weight_dtype": "int8", "runtime_per_gpu": 2 * GB}
    wanted = readings(load_spec("llama-2-70b"), "h100-80gb", 2, (0.95,), **options)
    assert len(wanted) == len(answer["readings"]) == 3
    for said, r in zip(answer["readings"], wanted, strict=True):
        assert said["left_for_kv"] == r.budget.left_for_kv
        assert said["longest_sequence"] == longest_sequence(r.budget) // 16 * 16
        assert said["max_sequences"] == r.budget.max_sequences(5000, 16)
        for key, n in (("fewest_cards_for_one", 1), ("fewest_cards", 20)):
            assert said[key] == fewest_cards(load_spec("llama-2-70b"), "h100-80gb", 5000, n, 16, capacity=r.capacity, utilization=0.95,
                                             **options)  # fmt: skip


def test_all_that_is_taken_from_the_cards_is_said(capsys):
    answer = fitted(capsys, "llama-2-70b", "--gpus", "2")
    assert (answer["runtime"], answer["activations"]) == (2 * 3 * GB, 0)
    for reading in answer["readings"]:
        assert reading["capacity"] - answer["weights"] - answer["runtime"] - answer["activations"] == reading["left_for_kv"]
    main(["fit", "llama-2-70b", "--gpus", "2", "--lang", "en"])
    assert "runtime 2 × 3 GB" in capsys.readouterr().out
    main(["fit", "llama-2-70b", "--gpus", "2", "--lang", "zh-TW"])
    assert "執行環境 2 × 3 GB" in capsys.readouterr().out


def test_exit_codes(tmp_path, capsys):
    assert main(["fit", "llama-2-70b", "--gpus", "2"]) == 0
    assert main(["fit", "llama-2-70b"]) == 1
    for wrong in (["--gpus", "3"], ["--gpu", "h100"], ["--utilization", "2"], ["--tokens", "0"], ["--sequences", "0"], ["--weight-gb", "nan"],
                  ["--plot", str(tmp_path / "no" / "such.png")], ["--gpu", "t4-16gb", "--plot", str(tmp_path / "a.png")]):  # fmt: skip
        assert main(["fit", "llama-2-70b", *wrong]) == 2, wrong
        assert capsys.readouterr().err


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_plot_draws_a_picture_and_says_it_in_words(lang, tmp_path, capsys):
    path = tmp_path / "fit.png"
    assert main(["fit", "llama-2-70b", "--gpus", "2", "--plot", str(path), "--lang", lang]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    words = "".join(capsys.readouterr().out.split())
    assert "20.75" in words and "84,977" in words, "the largest reading at 4,096 tokens, and where its line ends at one sequence"


def plotted_without(module: str, path) -> subprocess.CompletedProcess:
    code = (f"import sys; sys.modules[{module!r}] = None\n"
            f"from kvlib.cli import main; sys.exit(main(['fit', 'llama-2-7b', '--lang', 'en', '--plot', {str(path)!r}]))")  # fmt: skip
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, encoding="utf-8")


def test_plot_without_matplotlib_keeps_the_table_and_says_what_to_install(tmp_path, capsys):
    done = plotted_without("matplotlib", tmp_path / "a.png")
    assert done.returncode == 2
    assert "kvlib[book]" in done.stderr and "pip install -e '.[book]'" in done.stderr and "Traceback" not in done.stderr
    main(["fit", "llama-2-7b", "--lang", "en"])
    assert done.stdout == capsys.readouterr().out


def test_plot_needs_no_notebook(tmp_path):
    done = plotted_without("IPython", tmp_path / "a.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["fit.svg", "fit.xyz", "fit"])
def test_a_figure_that_is_no_png_is_refused_first(name, tmp_path, capsys):
    assert main(["fit", "llama-2-7b", "--plot", str(tmp_path / name)]) == 2
    said = capsys.readouterr()
    assert ".png" in said.err and said.out == "" and not (tmp_path / name).exists()


def test_weights_are_those_of_the_checkpoint(capsys):
    answer = fitted(capsys, "gpt-oss-120b")
    assert (answer["weight_dtype"], answer["weights"]) == ("stored", load_spec("gpt-oss-120b").weight_bytes("stored"))
    main(["fit", "gpt-oss-120b"])
    assert "65.25 GB (mxfp4, as stored)" in capsys.readouterr().out


def test_a_reading_that_is_not_known_is_left_out(capsys):
    answer = fitted(capsys, "llama-2-7b", "--gpu", "mi300x-192gb", "--utilization", "1")
    assert [r["capacity_convention"] for r in answer["readings"]] == ["decimal", "binary"]
    main(["fit", "llama-2-7b", "--gpu", "mi300x-192gb"])
    assert "reported: not known" in capsys.readouterr().out


def test_the_smallest_capacity_comes_first():
    found = [r.budget.capacity for r in readings(load_spec("llama-2-7b"), "t4-16gb", utilizations=(1.0,))]
    assert found == sorted(found) and len(found) == 3
