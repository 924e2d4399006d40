"""Events that leave the house: what they are called, how they are signed, where they may go, and when they go again."""
