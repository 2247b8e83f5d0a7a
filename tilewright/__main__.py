"""`python -m tilewright` is the `tilewright` command."""

import sys

from tilewright.api.cli import main

sys.exit(main())
