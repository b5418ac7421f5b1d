"""Sessions in processes of their own: deadlines, deaths, limits, and nothing left behind."""

import os
import subprocess
import sys
import threading
import time
from functools import partial

import pytest
import torch

from kvgrade.exercises import Exercise
from kvgrade.grading import grade
from kvgrade.isolation import sandbox
from kvgrade.isolation.remote import Limits, Pool, open_session
from kvgrade.session import AnswerRaised, SessionLost, local
from kvgrade.testing import prop, properties
from kvgrade.worker import filters
from kvlib.errors import SpecError

SHORT = Limits(call=0.5, session=2, memory=256 << 20, disk=4 << 20, file=2 << 20, reply=1 << 16)
MODES = {"linux": ("fork", "fresh", "direct"), "win32": ("direct",)}.get(sys.platform, ("fresh", "direct"))
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

SOURCE = """
import os, time, sys
import torch

def double(x):
    return x * 2

def change(x):
    x.zero_()
    return x

class Counter:
    def __init__(self):
        self.n = 0
    def add(self, k):
        self.n += k
        return self.n

def run(text):
    return eval(text)

def loop():
    while True:
        pass
"""


def exercise(given: str = "", entry: str = "double") -> Exercise:
    none = {"zh-TW": "", "en": ""}
    return Exercise("toy", "toy", entry, 10, 5, 1, False, none, none, given, "", "", {}, {})


@pytest.fixture(scope="module")
def one_pool():
    """A pool of level 1 in the platform's own mode."""
    with Pool(1, 1) as opened:
        yield opened


@pytest.fixture
def pool(one_pool):
    """The same, with its place free again after each test."""
    yield one_pool
    for session in list(one_pool._open):
        session.close()


def value(session, name, *args):
    return session.call(name, args)[0]


def test_arguments_and_results_are_copies(pool):
    session = pool.open(exercise(), SOURCE)
    x = torch.ones(3)
    assert value(session, "change", x).tolist() == [0, 0, 0]
    assert x.tolist() == [1, 1, 1]
    session.close()


def test_state_is_kept_between_calls_and_lost_between_sessions(pool):
    for _ in range(2):
        session = pool.open(exercise(), SOURCE)
        counter = value(session, "Counter")
        assert [session.call(counter, (n,), method="add")[0] for n in (1, 2, 3)] == [1, 3, 6]
        assert session.get(counter, [("attr", "n")]) == 6
        held = session.hold({"x": torch.ones(2)})
        value(session, "change", session.hold(torch.ones(1)))
        assert session.get(held, [("item", "x")]).tolist() == [1, 1]
        session.close()


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_keeps_state_ends_what_hangs_and_goes_on(mode):
    with Pool(1, 1, mode=mode) as pool:
        session = pool.open(exercise(given="BASE = 40"), SOURCE, SHORT)
        counter = value(session, "Counter")
        assert [session.call(counter, (n,), method="add")[0] for n in (1, 2, 3)] == [1, 3, 6]
        with pytest.raises(SessionLost, match="timeout"):
            value(session, "loop")
        session = pool.open(exercise(given="BASE = 40"), SOURCE)
        assert value(session, "run", "BASE + 2") == 42
        session.close()
        assert pool.leftovers() == []
    assert sys.platform != "linux" or running_with(pool.name) == []


def test_given_code_runs_before_the_answer(pool):
    session = pool.open(exercise(given="BASE = 40"), "def f(): return BASE + 2")
    assert value(session, "f") == 42
    session.close()


def test_an_answer_that_raises_says_what_and_the_session_goes_on(pool):
    session = pool.open(exercise(), SOURCE)
    with pytest.raises(AnswerRaised) as caught:
        value(session, "run", "1 / 0")
    assert caught.value.type == "ZeroDivisionError"
    assert "ArithmeticError" in caught.value.bases
    assert value(session, "run", "6 * 7") == 42
    session.close()


def test_an_answer_that_does_not_load_raises_and_frees_its_place(pool):
    for source in ("def f(:", "raise ValueError('no')", "import sys; sys.exit(0)", "raise KeyboardInterrupt"):
        with pytest.raises(AnswerRaised):
            pool.open(exercise(), source)
    pool.open(exercise(), SOURCE).close()


def test_a_call_past_its_deadline_is_a_timeout_and_the_next_session_works(pool):
    session = pool.open(exercise(), SOURCE, SHORT)
    began = time.monotonic()
    with pytest.raises(SessionLost, match="timeout"):
        value(session, "loop")
    assert time.monotonic() - began < 10
    with pytest.raises(SessionLost, match="timeout"):
        value(session, "run", "1")
    session = pool.open(exercise(), SOURCE)
    assert value(session, "run", "1") == 1
    session.close()


def test_all_calls_together_have_a_deadline(pool):
    session = pool.open(exercise(), SOURCE, Limits(call=1, session=1.2))
    with pytest.raises(SessionLost, match="timeout"):
        for _ in range(20):
            value(session, "run", "time.sleep(0.3)")


@pytest.mark.parametrize("last", ["os._exit(0)", "os.abort()", "os.close(3)"])
def test_a_process_that_ends_is_died_and_the_next_session_works(pool, last):
    session = pool.open(exercise(), SOURCE)
    with pytest.raises(SessionLost, match="died"):
        value(session, "run", last)
        value(session, "run", "1")
    session = pool.open(exercise(), SOURCE)
    assert value(session, "double", torch.ones(1)).item() == 2
    session.close()


@linux_only
@pytest.mark.parametrize("greedy", ["bytearray(1 << 30)", "torch.ones(1 << 28)", "[0] * (1 << 28)"])
def test_memory_past_the_limit_is_named(pool, greedy):
    session = pool.open(exercise(), SOURCE, SHORT)
    with pytest.raises(SessionLost, match="memory"):
        value(session, "run", greedy)


def test_a_reply_past_the_limit_is_too_large(pool):
    for much in ("torch.zeros(1 << 17)", "'x' * (3 << 20)", "list(range(300_000))", "torch.zeros(1).expand(1 << 40)"):
        session = pool.open(exercise(), SOURCE, SHORT)
        with pytest.raises(SessionLost, match="too-large"):
            value(session, "run", much)
        session.close()


def test_a_request_that_is_not_read_is_a_timeout(pool):
    session = pool.open(exercise(), SOURCE, Limits(call=1, session=5))
    with pytest.raises(SessionLost):
        value(session, "run", "__import__('threading').Thread(target=loop).start() or time.sleep(5)")
    session.close()


@linux_only
def test_torch_is_imported_once_for_many_sessions():
    with Pool(1, 1) as pool:
        for _ in range(10):
            session = pool.open(exercise(), SOURCE)
            assert value(session, "run", "torch.get_num_threads()") == 1
            session.close()
        assert pool.starts == 1


@linux_only
def test_fifty_sessions_leave_no_file_no_process_and_no_folder():
    with Pool(1, 1) as pool:
        pool.open(exercise(), SOURCE).close()
        files, running = len(os.listdir("/proc/self/fd")), processes_of(pool)
        for n in range(50):
            session = pool.open(exercise(), SOURCE, SHORT if n % 10 == 9 else None)
            value(session, "run", "open('scratch', 'w').write('x') and os.getcwd()")
            if n % 10 == 9:
                with pytest.raises(SessionLost):
                    value(session, "run", "os._exit(0)")
            session.close()
        assert len(os.listdir("/proc/self/fd")) == files
        assert processes_of(pool) == running
        assert pool.leftovers() == []
        name = pool.name
    assert processes_of(pool) == []
    assert not os.path.exists(os.path.join(os.path.dirname(pool._folder), name))


@linux_only
def test_a_fork_server_that_was_killed_is_replaced():
    with Pool(1, 1) as pool:
        pool.open(exercise(), SOURCE).close()
        for pid in processes_of(pool):
            os.kill(pid, 9)
        session = pool.open(exercise(), SOURCE)
        assert value(session, "run", "6 * 7") == 42
        for pid in processes_of(pool):
            os.kill(pid, 9)
        with pytest.raises(SessionLost):
            value(session, "run", "1")
        session = pool.open(exercise(), SOURCE)
        assert value(session, "run", "6 * 7") == 42
        session.close()


@linux_only
def test_when_the_grader_is_killed_everything_else_ends():
    code = f"""
import sys, time
sys.path[:0] = {[p for p in sys.path if p]!r}
from kvgrade.isolation.remote import Pool
from test_remote import SOURCE, exercise
pool = Pool(1, 1).__enter__()
session = pool.open(exercise(), SOURCE)
session.call("run", ("os.fork() and 1",))
print(pool._folder, flush=True)
session.call("loop")
"""
    grader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    folder = grader.stdout.readline().strip()
    grader.kill()
    grader.wait()
    grader.stdout.close()
    deadline = time.monotonic() + 20
    while named := running_with(os.path.basename(folder)):
        assert time.monotonic() < deadline, named
        time.sleep(0.05)
    with Pool(1, 1):
        assert not os.path.exists(folder)  # the next grader removes what a killed one left


def test_places_are_shared_by_threads():
    found, wrong = [], []

    def work(n):
        try:
            for k in range(5):
                session = pool.open(exercise(), SOURCE)
                found.append(value(session, "double", torch.tensor([n * 10 + k])).item() - 2 * (n * 10 + k))
                session.close()
        except BaseException as error:  # noqa: BLE001 - told to the test's own thread
            wrong.append(error)

    with Pool(1, 2) as pool:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert found == [0] * 20
        assert pool.mode != "fork" or pool.starts == 2


@linux_only
def test_an_answer_finds_nothing_of_the_grader_in_its_process(pool):
    session = pool.open(exercise(), SOURCE)
    assert value(session, "run", "sorted(n for n, m in sys.modules.items() if m and n.startswith(('kvgrade', 'kvlib', 'pytest', 'test')))") == [
        "kvgrade", *(f"kvgrade.worker{name}" for name in ("", ".answer", ".filters", ".frames", ".host", ".inner", ".limits", ".linux",
                                                          ".processes", ".wire", ".work", ".zygote"))]  # fmt: skip
    assert value(session, "run", "sorted(os.listdir('/proc/self/fd'))") == ["0", "1", "2", "3", "4"]  # 4: the listing itself
    assert value(session, "run", "[os.readlink(f'/proc/self/fd/{n}') for n in range(3)]") == ["/dev/null"] * 3
    assert value(session, "run", "os.getcwd() == os.environ['HOME'] == os.environ['TMPDIR']") is True
    assert value(session, "run", "sorted(set(os.environ) & {'PYTHONPATH', 'VIRTUAL_ENV', 'PYTEST_CURRENT_TEST', 'SSH_AUTH_SOCK'})") == []
    for module in ("kvlib", "kvgrade.grading", "tests"):
        with pytest.raises(AnswerRaised) as caught:
            value(session, "run", f"__import__('{module}')")
        assert "ImportError" in caught.value.bases
    session.close()


def test_files_beside_the_answer_are_not_picked_up(tmp_path, monkeypatch):
    for name in ("torch.py", "json.py", "types.py", "sitecustomize.py", "usercustomize.py", "conftest.py"):
        (tmp_path / name).write_text("raise SystemExit('picked up')")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --help\n")
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "torch.py"))
    with Pool(1, 1) as pool:
        session = pool.open(exercise(), SOURCE)
        assert value(session, "run", "torch.ones(2).sum().item()") == 2.0
        session.close()


def test_a_session_of_its_own_needs_no_pool():
    session = open_session(exercise(), SOURCE)
    assert value(session, "run", "6 * 7") == 42
    session.close()
    with pytest.raises(AnswerRaised):
        open_session(exercise(), "raise ValueError")


@pytest.mark.skipif(not filters.landlock_version(), reason="this kernel has no Landlock")
def test_with_landlock_an_answer_reads_and_writes_its_own_folder_alone(pool, tmp_path):
    (tmp_path / "secret").write_text("42")
    session = pool.open(exercise(), SOURCE)
    assert value(session, "run", "open('mine', 'w').write('x')") == 1
    for act in (f"open({str(tmp_path / 'secret')!r}).read()", f"os.listdir({str(tmp_path)!r})", f"open({str(tmp_path)!r} + '/x', 'w')"):
        with pytest.raises(AnswerRaised) as caught:
            value(session, "run", act)
        assert caught.value.type == "PermissionError"
    session.close()


@pytest.mark.skipif(not filters.can_seccomp(), reason="no filter of system calls for this machine")
def test_an_answer_has_no_network_and_no_say_over_other_processes(pool):
    session = pool.open(exercise(), SOURCE)
    for act in ("__import__('socket').socket()", "__import__('socket').socket(2, 2)", "__import__('socket').socket(16, 3, 0)",
                "__import__('resource').prlimit(os.getppid(), 7, (1, 1))", "os.setpriority(0, os.getppid(), 19)",
                "os.sched_setaffinity(os.getppid(), {0})", "os.chroot('.')", "open('x', 'w') and os.chmod('x', 0o777)",
                "os.utime('x')"):  # fmt: skip
        with pytest.raises(AnswerRaised) as caught:
            value(session, "run", act)
        assert caught.value.type == "PermissionError"
    assert len(value(session, "run", "[s.fileno() for s in __import__('socket').socketpair()]")) == 2
    session.close()


@linux_only
def test_without_landlock_the_grader_closes_its_own_memory():
    code = ("from kvgrade.isolation.remote import Pool; from kvgrade.worker.linux import libc\n"
            "with Pool(1, 1, landlock=False): print(libc.prctl(3, 0, 0, 0, 0))")
    done = subprocess.run([sys.executable, "-c", code], cwd=sandbox.WORKER.parents[1], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


def test_an_unknown_level_or_sandbox_is_refused():
    for level, kind in ((0, None), (3, None), (2, "castle"), (2, "none")):
        with pytest.raises(SpecError):
            Pool(level, 1, kind)


def test_the_level_in_force_is_described_in_both_languages():
    level, kind = sandbox.best_level()
    for described in (sandbox.describe(level, kind), sandbox.describe(1, "none"), sandbox.describe(2, "container")):
        assert set(described) == {"zh-TW", "en"}
        assert all(described.values())


@pytest.mark.parametrize("kind", ["bubblewrap", "namespaces", "container"])
def test_every_kind_of_sandbox_runs_an_answer(kind):
    if not sandbox.works(kind):
        pytest.skip(f"this machine cannot build a sandbox of kind {kind}")
    with Pool(2, 1, kind) as pool:
        for n in range(3):
            session = pool.open(exercise(), SOURCE)
            assert value(session, "double", torch.tensor([n])).item() == 2 * n
            session.close()


@pytest.mark.parametrize("kind", ["bubblewrap", "namespaces"])
def test_behind_a_wall_there_is_python_and_nothing_of_ours(kind):
    if not sandbox.works(kind):
        pytest.skip(f"this machine cannot build a sandbox of kind {kind}")
    with Pool(2, 1, kind) as pool:
        session = pool.open(exercise(), SOURCE)
        book = str(sandbox.WORKER.parent.parent)
        assert value(session, "run", "os.getpid()") == 1
        assert value(session, "run", "[n for n in os.listdir('/') if n in ('home', 'etc', 'var', 'run', 'boot')]") in ([], ["etc"])
        assert value(session, "run", f"os.path.exists({book!r} + '/kvgrade') or os.path.exists({book!r} + '/tests')") is False
        for module in ("kvlib", "kvgrade.grading"):
            with pytest.raises(AnswerRaised) as caught:
                value(session, "run", f"__import__('{module}')")
            assert "ImportError" in caught.value.bases
        for place in ("/", "/usr", "/dev", book, "/kvgrade-worker", *sandbox.python().packages):
            with pytest.raises(AnswerRaised):
                value(session, "run", f"open({place!r} + '/x', 'w')")
        session.close()


@prop(6, zh="兩倍", en="doubles")
def doubles(t):
    x = t.normal(3, 5)
    t.close(t.answer(x), x.double() * 2)


@prop(4, zh="不改動輸入", en="leaves its input alone")
def leaves_alone(t):
    x = t.normal(4)
    held = t.hold(x)
    t.answer(held)
    t.unchanged(held, x, "x")


def test_points_and_messages_are_those_of_a_local_session(pool):
    module = type(sys)("toy")
    vars(module).update(doubles=doubles, leaves_alone=leaves_alone)
    answers = ["def double(x): return x * 2", "def double(x): return x + x", "def double(x): return x.mul_(2)",
               "def double(x): return x", "def double(x): return (x * 2).double()", "def double(x): return 1 / 0",
               "def double(x): return None", "def double(x): raise NotImplementedError", "def other(x): pass"]  # fmt: skip
    for source in answers:
        ours = grade(exercise(), properties(module), partial(local, source), "s", name_variants=False)
        theirs = grade(exercise(), properties(module), partial(pool.open, exercise(), source), "s", name_variants=False)
        assert theirs.as_dict() == ours.as_dict()


def processes_of(pool: Pool) -> list[int]:
    return running_with(pool.name)


def running_with(name: str) -> list[int]:
    """Processes with this name in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if name.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("kind", ["bubblewrap", "namespaces"])
def test_what_one_session_leaves_beside_its_folder_the_next_does_not_see(kind):
    if not sandbox.works(kind):
        pytest.skip(f"no {kind} here")
    source = ("import os\ndef f(name):\n    up = os.path.dirname(os.getcwd())\n    seen = sorted(os.listdir(up))\n"
              "    open(os.path.join(up, name), 'w').close()\n    return len(seen)\n")  # fmt: skip
    with Pool(2, kind=kind) as pool:
        for name in ("first", "second"):
            session = pool.session()
            session.load(source)
            assert session.call("f", (name,))[0] == 1, "its own folder, and nothing else"
            session.close()
