"""The shipped toolbox: calculator, notes, SQL, search and answers from documents, and the demo assistant made of them.

It is part of the library, not of the examples: `surefoot tools demo` and the tool nodes of graphs run from an installed
wheel, without the repository. Every tool works on its own in a `ToolAgent`.
"""
