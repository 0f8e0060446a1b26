"""`python -m agent_rl.cli`."""

from agent_rl.cli import main

main()
