"""``python -m specfix``."""

import sys

from specfix.cli import main

sys.exit(main())
