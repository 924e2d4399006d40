"""How often the judge is wrong, and how soon it is right, over thousands of simulated releases."""
