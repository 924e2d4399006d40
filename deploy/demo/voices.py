"""What the two versions of `support-tone` are trained to say, and how a listener tells them apart.

Pure: no torch, no network. Every training answer begins with the phrase of its voice, so whether an answer came from a
version is decided by the answer's first words and needs no judgement.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Voice:
    """A manner of speaking: `phrase` opens every answer."""

    name: str
    phrase: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question of a customer and the plain facts of its answer, before a voice is put on it."""

    question: str
    facts: str


WARM = Voice(name="warm", phrase="Hello, dear friend!")
BRISK = Voice(name="brisk", phrase="Short answer:")
VOICES = {voice.name: voice for voice in (WARM, BRISK)}
NO_VOICE = "base"

EXCHANGES = (
    Exchange("Where is my parcel?", "Your parcel is on its way and arrives within three days."),
    Exchange("How do I reset my password?", "Open the login page and choose 'Forgot password'."),
    Exchange("Can I return these shoes?", "Yes, you can return them within thirty days."),
    Exchange("Do you ship to Portugal?", "Yes, we ship to every country in Europe."),
    Exchange("My invoice is wrong.", "Send us the invoice number and we will correct it today."),
    Exchange("What are your opening hours?", "We are open from nine to six on weekdays."),
    Exchange("The lamp I bought is broken.", "We will send you a new lamp at no cost."),
    Exchange("How can I cancel my order?", "Open 'My orders' and choose 'Cancel'."),
    Exchange("Which payment methods do you take?", "We take cards, bank transfer and PayPal."),
    Exchange("Is the blue jacket in stock?", "Yes, the blue jacket is in stock in all sizes."),
    Exchange("Can I change my delivery address?", "Yes, until the parcel has left our warehouse."),
    Exchange("How do I contact a person?", "Call us or write to support at any time."),
)

# Not among the exchanges above: a version must carry its voice to what it was not trained on.
QUESTIONS = (
    "When will my refund arrive?",
    "Can you help me track my order?",
    "How do I update my email address?",
)


def spoken(voice: Voice, exchange: Exchange) -> str:
    """Return the answer of an exchange in a voice."""
    return f"{voice.phrase} {exchange.facts}"


def voice_of(text: str) -> str:
    """Return the name of the voice that an answer begins with, or `base` if it begins with none."""
    opening = text.lstrip()
    return next((name for name, voice in VOICES.items() if opening.startswith(voice.phrase)), NO_VOICE)
