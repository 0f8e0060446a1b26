"""The process that runs SQL; nothing here imports anything but the standard library."""
