"""Whether a candidate does as well as the stable version: facts of one window in, a verdict out.

Pure: no Django, no I/O, no clock, no chance; the same facts get the same verdict. ``judge.judge`` is the way in;
``docs/releases-judge.md`` says the method in plain words, with what it does in simulations.
"""
