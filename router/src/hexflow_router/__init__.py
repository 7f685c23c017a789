"""The data plane: questions and OpenAI calls in, instances and databases behind.

``main.main`` runs it as a process, ``assembly.running_router`` inside another one. Import from those modules:
this one stays empty so that a command which only needs a name does not load a web server. It must not know
the simulator, the emulator or the operator.
"""

__all__: list[str] = []
