"""Triton decides once per process whether kernels are interpreted or compiled. So interpreted/ runs in a process of its
own, which `test_interpreted.py` starts."""

import os

collect_ignore = [] if os.environ.get("TRITON_INTERPRET") == "1" else ["interpreted"]
