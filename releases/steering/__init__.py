"""What to do next for one release: a pure decision over a snapshot. One change at a time, then look again.

A step begins when all before it have passed, and passes when what it waits for has come. A live step passes when its
least time is over, the candidate has answered enough, and the judge says *pass*; it is rolled back at the first *fail*;
everything else waits, no data above all, until a person decides. Pure: no Django, no I/O, no clock.
"""
