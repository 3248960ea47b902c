"""Search programs that explain the demonstrations of a task, and answer its test inputs."""
