"""What turns sources into the book, and what keeps the book honest.

Nothing in ``kvlib`` imports anything from here.
"""
