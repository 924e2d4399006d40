"""How long each page takes, and how often it asks the database, over 100,000 versions and 5 million audit records."""
