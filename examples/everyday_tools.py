"""A dozen tools of an everyday assistant, as plain functions, for the examples beside this file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter


def get_weather(city: str) -> str:
    """Weather forecast for a city: rain, temperature, wind."""
    return f"Rain in {city}."


def send_email(to: str, text: str) -> str:
    """Send an email to somebody."""
    return f"Sent to {to}: {text}"


def create_event(title: str, when: str) -> str:
    """Put an appointment or a meeting on the calendar."""
    return f"{title}, {when}"


def book_table(restaurant: str, people: int) -> str:
    """Reserve a table at a restaurant."""
    return f"A table for {people} at {restaurant}."


def order_taxi(address: str) -> str:
    """Order a taxi to an address."""
    return f"A taxi to {address} is on its way."


def search_flights(origin: str, destination: str) -> str:
    """Find flights between two airports."""
    return f"Two flights from {origin} to {destination}."


def convert_currency(amount: float, currency: str) -> str:
    """Convert an amount of money to another currency."""
    return f"{amount} in {currency}"


def translate_text(text: str, language: str) -> str:
    """Translate a text into another language."""
    return f"{text} in {language}"


def track_parcel(number: str) -> str:
    """Where a parcel is, by its tracking number."""
    return f"Parcel {number} is in Oslo."


def play_music(title: str) -> str:
    """Play a song, an album or an artist."""
    return f"Playing {title}."


def set_alarm(time: str) -> str:
    """Set an alarm clock for a time."""
    return f"Alarm at {time}."


def lock_door() -> str:
    """Lock the front door of the house."""
    return "Locked."


TOOLS: list[Callable[..., str]] = [
    get_weather,
    send_email,
    create_event,
    book_table,
    order_taxi,
    search_flights,
    convert_currency,
    translate_text,
    track_parcel,
    play_music,
    set_alarm,
    lock_door,
]
TURNS = ["Will it rain in Oslo tomorrow?", "Then reserve a restaurant table for two on Friday."]


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON Schema of a function's parameters."""
    return TypeAdapter(function).json_schema()
