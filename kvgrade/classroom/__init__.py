"""Grades a class: a folder or an archive of submissions in, marks, pages and filled LMS sheets out.

`collect` (which file is whose), `grade` (the run, resumable), `marks`, `pages`, `lms`, `similarity` (what is written).
"""

from kvgrade.classroom.grade import grade_class
from kvgrade.classroom.results import ClassReport

__all__ = ["ClassReport", "grade_class"]
