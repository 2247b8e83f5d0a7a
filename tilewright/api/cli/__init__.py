"""`tilewright`: run and compile programs from the command line. Start at `command.py`; one file a command."""

from tilewright.api.cli.command import main

__all__ = ["main"]
