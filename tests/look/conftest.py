"""A fresh look for each test, and a stand-in for the notebook that records what is shown."""

import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _fresh_look():
    from matplotlib import pyplot
    from matplotlib.font_manager import fontManager

    from kvlib import i18n

    language, fonts = i18n.language(), list(fontManager.ttflist)
    with matplotlib.rc_context():
        yield
    pyplot.close("all")
    fontManager.ttflist[:] = fonts
    i18n.set_language(language)


@pytest.fixture
def shown():
    """Calls like `shown(figure, fig, alt=…)` give the list of outputs: (data, metadata)."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    InteractiveShell.instance()

    def run(function, *args, **kwargs):
        with capture_output() as captured:
            assert function(*args, **kwargs) is None
        assert (captured.stdout, captured.stderr) == ("", "")
        return [(output.data, output.metadata) for output in captured.outputs]

    yield run
    InteractiveShell.clear_instance()
