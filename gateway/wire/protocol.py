"""HTTP/1.1 as uvicorn speaks it by httptools, with the bound on a request's head that uvicorn has for h11 only."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LONGEST_HEAD = 64 * 1024


class BoundedHttp(HttpToolsProtocol):
    """Ends a connection whose request line and headers don't end: they are kept in memory before anybody is asked."""

    _in_head = False
    _head_bytes = 0

    def on_message_begin(self) -> None:
        """See httptools: a request begins."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """See httptools: the request's head has ended."""
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and count what still belongs to the head."""
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > _LONGEST_HEAD:
            self.send_400_response("The request's line and headers are too long.")
