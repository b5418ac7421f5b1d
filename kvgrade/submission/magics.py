"""What is not Python in a code cell: `%line` and `!shell` magics are dropped, cells of another language set aside.

Invariant: the text keeps its lines, so that a line number in a message is the learner's own. Nothing is run.
"""

import re

PYTHON_CELLS = ("time", "capture")  # %%magics whose cell is still Python that defines its names

# possessive (*+): a repetition gives nothing back, so that no line is read more than a few times
_CELL_MAGIC = re.compile(r"(?:[ \t]*+(?:#[^\n]*+)?\n)*+[ \t]*+%%(\w+)[^\n]*+")
_LINE = re.compile(
    r"[ \t]*+(?:[%!][^\n]*+"  # %magic, !shell
    r"|\?{1,2}[\w.]++|[\w.]++\?{1,2}"  # ?name, name?
    r"|[\w, \t]++=[ \t]*+[%!][^\n]*+"  # lines = !ls
    r"|get_ipython\(\)[^\n]*+"  # what nbconvert makes of them
    r")[ \t]*+(?=\n|\Z)"
)
_TOKEN = re.compile(
    r"#[^\n]*"
    r'|"""(?:[^\\]|\\.)*?(?:"""|\Z)'
    r"|'''(?:[^\\]|\\.)*?(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\.)*"?'
    r"|'(?:[^'\\\n]|\\.)*'?"
    r"|\\\n|[\[({]|[\])}]|\n"
    r"|[^#\"'\\\[({\])}\n]+|\\",
    re.DOTALL,
)


def cell_magic(text: str) -> str | None:
    """The name of the `%%magic` that takes the whole cell away from Python, if there is one."""
    match = _CELL_MAGIC.match(text)
    return match[1] if match and match[1] not in PYTHON_CELLS else None


def without_magics(text: str) -> tuple[str, list[str]]:
    """The text with `pass` in place of every magic line, and those lines. Lines inside strings and brackets are no magics."""
    if not re.search(r"[%!?]|get_ipython", text):
        return text, []
    out, dropped, position, depth, begins = [], [], 0, 0, True
    while position < len(text):
        if begins and not depth and (match := _LINE.match(text, position)):
            line = match[0]
            dropped.append(line.strip())
            out.append(line[: len(line) - len(line.lstrip())] + "pass")
            position, begins = match.end(), False
            continue
        match = _TOKEN.match(text, position)
        token = match[0] if match else text[position]
        depth = max(0, depth + (token in ("[", "(", "{")) - (token in ("]", ")", "}")))
        begins = token == "\n"
        out.append(token)
        position += len(token)
    return "".join(out), dropped
