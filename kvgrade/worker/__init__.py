"""What runs in the answer's process: it imports torch and the standard library, nothing of ours outside this folder.

The grader's side imports `wire` and `host` from here, too, so that both sides speak one protocol. A sandbox shows an answer
this folder alone: no test, no solution, no kvlib.
"""
