"""What a gateway counts of itself, added up over the processes behind one port."""
