"""Three engines with the same schedule and the same digits: interpreter, queues across processes, compiled program."""
