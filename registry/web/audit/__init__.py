"""The audit log as people read it: what is found, one record, how the chain stands, and taking it out of the house."""
