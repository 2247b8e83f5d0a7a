"""Passes of one's own: the code of docs/guides/writing-a-pass.md."""
