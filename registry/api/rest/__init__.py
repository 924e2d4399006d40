"""What every operation of the REST API shares, whatever it is about.

- ``views.ApiView``: the base of every view below ``/api/v1``. It says per method which action it asks for (``actions``)
  and answers a POST that comes again with the same ``Idempotency-Key`` as it did the first time.
- ``pagination.page``: a list is one page of it, with a cursor for the next.
- ``etags.answer`` and ``etags.require_match``: a mutable thing says its ETag; a change may name the one it is based on.
- ``filters.read_filters``: the query parameters of a list, as a serializer says.
- ``limits``: so many requests a minute for each token.
- ``schema.listed``: the shape of a page, for ``extend_schema``; ``openapi`` makes the document of it all.
"""
