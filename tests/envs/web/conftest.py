from __future__ import annotations

import pytest

pytest.importorskip("selectolax", reason="needs pip install 'agent-rl[web]'")
pytest.importorskip("jinja2", reason="needs pip install 'agent-rl[web]'")
