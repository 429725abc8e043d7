"""Ready-made tools: calculator, notes, SQL, document search and answers, and the demo assistant that uses them.

They are part of the package because `surefoot tools demo` and the tool nodes of graphs run from an installed wheel. Every
tool can be passed to a `ToolAgent` separately.
"""
