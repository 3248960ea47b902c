"""From bytes in files to tasks: every format that is understood, every fault that is named."""
