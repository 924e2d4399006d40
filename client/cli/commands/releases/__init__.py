"""Commands about releases and their templates."""
