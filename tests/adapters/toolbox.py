"""Thirty everyday tools, in the order of their catalog, for the tests of adapters."""

from __future__ import annotations

from typing import Any, Final

DESCRIPTIONS: Final = {
    "get_weather": "Weather forecast for a city: rain, temperature, wind.",
    "send_email": "Send an email to one or more people.",
    "search_email": "Find emails in the mailbox by sender, subject or words.",
    "create_event": "Put an appointment or meeting on the calendar.",
    "list_events": "Show the appointments of a day on the calendar.",
    "book_table": "Reserve a table at a restaurant.",
    "find_restaurant": "Find restaurants near a place, by kind of food.",
    "order_taxi": "Order a taxi to an address.",
    "search_flights": "Find flights between two airports on a date.",
    "book_hotel": "Reserve a hotel room for some nights.",
    "convert_currency": "Convert an amount of money to another currency.",
    "get_stock_price": "Current price of a share on the stock exchange.",
    "transfer_money": "Transfer money from the bank account to somebody.",
    "get_balance": "Balance of the bank account.",
    "translate_text": "Translate a text into another language.",
    "summarize_document": "Summarise a long document in a few sentences.",
    "create_invoice": "Write an invoice for a customer.",
    "track_parcel": "Where a parcel is, by its tracking number.",
    "play_music": "Play a song, an album or an artist.",
    "set_alarm": "Set an alarm clock for a time.",
    "set_timer": "Start a kitchen timer for some minutes.",
    "add_todo": "Put a task on the to-do list.",
    "turn_on_light": "Turn on the lamp in a room.",
    "set_thermostat": "Set the heating of a room to a temperature.",
    "lock_door": "Lock the front door of the house.",
    "run_sql": "Run a SQL query against the sales database.",
    "create_chart": "Draw a bar or line chart of numbers.",
    "open_ticket": "Report a bug in the issue tracker.",
    "deploy_service": "Deploy a service to production.",
    "resize_image": "Resize or crop an image file.",
}


def schema(name: str) -> dict[str, Any]:
    """The parameters of each tool: one text."""
    text = {"type": "string", "description": f"What {name} is given."}
    return {"type": "object", "properties": {"what": text}, "required": ["what"]}


def openai_tools() -> list[dict[str, Any]]:
    """The tools as the chat API takes them."""
    return [
        {
            "type": "function",
            "function": {"name": name, "description": text, "parameters": schema(name)},
        }
        for name, text in DESCRIPTIONS.items()
    ]


def anthropic_tools() -> list[dict[str, Any]]:
    """The tools as Anthropic takes them."""
    return [
        {"name": name, "description": text, "input_schema": schema(name)}
        for name, text in DESCRIPTIONS.items()
    ]


TURNS: Final = (
    "Will it rain in Oslo tomorrow?",
    "Reserve a table at a restaurant for two on Friday.",
    "Translate the menu into German.",
)
"""A conversation on three topics."""
EXPECTED: Final = ("get_weather", "book_table", "translate_text")
"""The tool that each turn needs."""
