"""`code-v1`: write a function or a program; judged by hidden inputs in a fresh sandbox."""
