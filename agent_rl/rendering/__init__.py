"""Messages to token ids and back, so that what was sampled is never tokenised again."""

from agent_rl.rendering.chat_template import ChatTemplate
from agent_rl.rendering.config import RenderingConfig
from agent_rl.rendering.renderer import Renderer

__all__ = ["ChatTemplate", "Renderer", "RenderingConfig"]
