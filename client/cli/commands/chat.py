"""`chat` and `feedback`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from client.chat import DEFAULT_MARK, ChatAnswer, ChatRequest, GatewayClient
from client.cli.app import JsonCommand
from client.cli.output import printable
from client.cli.params import alias_argument
from client.cli.session import Session, pass_session
from client.config import is_token
from client.i18n import _

if TYPE_CHECKING:
    from client.refs import PairRef

GATEWAY_VARIABLE = "LOREKEEPER_GATEWAY_URL"
KEY_VARIABLE = "LOREKEEPER_API_KEY"
_WORDS = {"up": 1.0, "down": 0.0}

_gateway_option = click.option(
    "--gateway-url", help=_("The gateway's address; default: variable {name}.").format(name=GATEWAY_VARIABLE)
)


class _MarkParam(click.ParamType[float]):
    name = "mark"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See click: a word, or a number from 0 to 1."""
        if value in _WORDS:
            return _WORDS[value]
        try:
            mark = float(value)
        except ValueError:
            mark = math.nan
        if not 0 <= mark <= 1:
            self.fail(_("A mark is up, down, or a number from 0 to 1, not {value}.").format(value=value), param, ctx)
        return mark


@click.command(cls=JsonCommand, help=_("Ask an alias a question through the gateway."))
@alias_argument
@click.argument("message")
@_gateway_option
@click.option("--system", help=_("A system message before the question."))
@click.option("--max-tokens", type=click.IntRange(1), help=_("The longest answer."))
@click.option("--temperature", type=click.FloatRange(0, 2), help=_("0 for the same answer each time."))
@click.option("--stream", is_flag=True, help=_("Print the answer as it comes."))
@pass_session
def chat(
    session: Session,
    alias: PairRef,
    message: str,
    *,
    gateway_url: str | None,
    system: str | None,
    max_tokens: int | None,
    temperature: float | None,
    stream: bool,
) -> None:
    """Print the answer, then which version gave it and how fast."""
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": message})
    request = ChatRequest(alias.name, messages, max_tokens=max_tokens, temperature=temperature)
    gateway = _gateway(session, gateway_url)
    if stream:
        answer = gateway.stream(request, _silent if session.json_mode else _print_piece)
        if not session.json_mode:
            click.echo()
    else:
        answer = gateway.ask(request)
        session.out.line(answer.content)
    session.out.document({"alias": str(alias), "content": answer.content, **_measured(answer)})
    session.out.note(_summary(answer))


@click.command(cls=JsonCommand, help=_("Say how good an answer was: up, down, or a number from 0 to 1."))
@click.argument("request_id")
@click.argument("mark", type=_MarkParam())
@click.option("--name", default=DEFAULT_MARK, help=_("What is marked; releases are judged by the default."))
@_gateway_option
@pass_session
def feedback(session: Session, request_id: str, mark: float, *, name: str, gateway_url: str | None) -> None:
    """Send the mark to the gateway."""
    told = _gateway(session, gateway_url).mark(request_id, mark, name=name)
    session.out.document(told)
    session.out.note(_("{request} is marked {mark:g} ({name}).").format(request=request_id, mark=mark, name=name))


def _gateway(session: Session, url: str | None) -> GatewayClient:
    address = url or session.environ.get(GATEWAY_VARIABLE, "")
    key = session.environ.get(KEY_VARIABLE, "").strip()
    if not address:
        raise click.UsageError(
            _("No gateway is known; give --gateway-url or set {name}.").format(name=GATEWAY_VARIABLE)
        )
    if not key:
        raise click.UsageError(_("No API key is known; set {name}.").format(name=KEY_VARIABLE))
    if not is_token(key):
        raise click.UsageError(
            _("{name} has characters that keys don't have; copy it again.").format(name=KEY_VARIABLE)
        )
    gateway = GatewayClient(address, key, transport=session.transport)
    click.get_current_context().call_on_close(gateway.close)
    return gateway


def _print_piece(text: str) -> None:
    click.echo(printable(text), nl=False)


def _silent(_text: str) -> None:
    """Print nothing: the JSON document comes at the end."""


def _measured(answer: ChatAnswer) -> dict[str, object]:
    return {
        "version": answer.version,
        "ttft_ms": answer.ttft_ms,
        "total_ms": answer.total_ms,
        "usage": answer.usage,
        "headers": answer.headers,
    }


def _summary(answer: ChatAnswer) -> str:
    version = answer.version or _("unknown version")
    if answer.ttft_ms is None:
        return _("[{version}, {total:.0f} ms]").format(version=version, total=answer.total_ms)
    text = _("[{version}, first token after {ttft:.0f} ms, {total:.0f} ms in all]")
    return text.format(version=version, ttft=answer.ttft_ms, total=answer.total_ms)
