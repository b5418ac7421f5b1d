"""Grades the book's exercises: in a notebook cell, alone, against a clock, for a class.

The verdict is made where the answer is not: see `session` (what travels), `testing` (what a hidden test is), `grading`.
"""
