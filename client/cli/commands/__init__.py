"""One module per family of commands; `client.cli.main` puts them together."""
