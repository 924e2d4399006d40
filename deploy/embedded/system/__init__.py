"""What the operating system gives: accounts, locks on folders, process sessions, files that are private."""
