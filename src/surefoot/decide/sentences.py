"""Sentences as people type them, over many subjects: what the standard scales of an encoder are fitted on."""

from __future__ import annotations

_SUBJECTS = (
    "the weather tomorrow|my bank account|a train ticket|the new phone|a chicken recipe|our database|the sales report|"
    "my doctor's appointment|the football match|a hotel in Paris|the tax form|this contract|the garden|my dog|the stock market|"
    "a Python function|the training run|the history of Rome|climate change|the moon|a birthday present|my password|the meeting|"
    "the customer's order|the air conditioner|a job interview|the school timetable|an old photograph|the electricity bill|"
    "this equation|the capital of Peru|a piano lesson|the broken window|my flight|the reward function|a neural network|"
    "the shipping address|the library book|a pair of shoes|the vaccine"
).split("|")

_FORMS = (
    "What is {}?|Tell me about {}.|How much does {} cost?|Please cancel {}.|Find everything we have on {}.|"
    "When did I last ask for {}?|Write down that {} can wait.|Compare {} with what we had last year.|"
    "Why does {} not work any more?|Remind me of {} on Monday.|How many times was {} mentioned?|"
    "Explain {} to a child in two sentences.|Who is responsible for {}?|I would like to change {}.|"
    "Calculate 17 percent of the price of {}.|Is there a problem with {}?"
).split("|")

SENTENCES = [form.format(subject) for subject in _SUBJECTS for form in _FORMS]
