"""The `lorekeeper` command line over `client.sdk`. Entry point: `client.cli.main:main`."""
