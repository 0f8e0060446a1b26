from __future__ import annotations

import pytest

pytest.importorskip("bm25s", reason="needs pip install 'agent-rl[search]'")
