"""The decision core: decide → record → outcome → learn → version → explain.

`agent.py` has the verbs, `record.py` the record of one decision, `store.py` where decisions wait for outcomes and finished
ones wait to be learned from (in memory, or in a journal on disk), `explanation.py` why an option was chosen. Tools, trials
and benchmarks are layers on top of it.
"""
