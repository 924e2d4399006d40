"""Adapters of every kind for one base model, good and bad, each with the verdict that it must get and why.

Made from numbers alone: nothing is trained or downloaded, and nothing that is made runs code when it is read.
"""
