"""What holds for all tests."""

from __future__ import annotations

import signal

# A shell starts what runs in its background with Ctrl-C ignored, and children inherit that; some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)
