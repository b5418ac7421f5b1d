"""What several grading tests use."""

from little_book import book, paper  # noqa: F401  fixtures
