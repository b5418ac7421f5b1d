"""Processes for answers: where they run, behind which walls, and what may come back from them."""
