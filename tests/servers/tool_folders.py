"""Folders that ``tools_server.py`` serves, and the configuration that starts the servers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("tools_server.py")


def tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    properties = {key: {"description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": description, "inputSchema": schema}


REFUND = tool("refund", "Gives a payment back.", amount="How much")
WEATHER = tool("weather", "Tells the weather forecast.", city="Where")


class ToolFolders:
    """Folders of servers, and the configuration that starts them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, *tools: dict[str, Any], mode: str = "good") -> None:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        aside = folder / "aside"
        aside.write_text(json.dumps(tools))
        aside.replace(folder / "tools.json")
        self.set_mode(name, mode)

    def set_mode(self, name: str, mode: str) -> None:
        aside = self._folder / name / "aside"
        aside.write_text(mode)
        aside.replace(self._folder / name / "mode")

    def config(self) -> dict[str, Any]:
        folders = sorted(path for path in self._folder.iterdir() if path.is_dir())
        return {
            "mcpServers": {
                folder.name: {
                    "command": sys.executable,
                    "args": ["-S", str(SERVER), str(folder)],
                }
                for folder in folders
            }
        }
