"""A new skill to start from: a ``SKILL.md`` that is valid and says what to replace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from router.errors import ConfigurationError
from router.skills.discovery import SKILL_FILE
from router.skills.manifest import NAME_LIMIT, NAME_PATTERN

_TEMPLATE: Final = """\
---
name: "{name}"
description: Placeholder for {title}. Replace it by one sentence on what the skill does, with the
  words that people use for it. Use when the user asks for {title}; name here the situations,
  symptoms, tools and file types that call for the skill.
metadata:
  routing-keywords: "{title}"
  intents: "{title}"
  examples: |
    a whole request about {title}, as a user would type it
    another request about {title}, by a symptom or a goal and in other words
---

# {heading}

Replace this text by the instructions: what an agent that loaded the skill should do, step by step.

## Steps

1. What to look at first, and how.
2. What to do, with the commands or the pattern to follow.
3. How to tell that it worked.

## Pitfalls

- What goes wrong easily, and what to do instead.

Keep it under 500 lines. Long material goes to files under `references/`, programs to `scripts/`,
templates to `assets/`; name them here, so that they are read only when they are needed.
"""


PLACEHOLDERS: Final = ("Placeholder for ", "a whole request about ", "another request about ")
"""How the texts begin that an author must replace before the skill can be told from others."""


def scaffold_skill(root: Path, name: str) -> Path:
    """Write a new skill's folder below a folder, which is made where it is missing.

    Returns:
        The ``SKILL.md``.

    Raises:
        ConfigurationError: the name breaks the format's rule, the skill exists already, or the
            folder cannot be written.
    """
    path = root / name / SKILL_FILE
    if len(name) > NAME_LIMIT or not re.fullmatch(NAME_PATTERN, name):
        raise ConfigurationError(
            f"the skill name {name!r}: it must be 1 to {NAME_LIMIT} lower-case letters, digits "
            "and single hyphens, and neither start nor end with one"
        )
    title = name.replace("-", " ")
    text = _TEMPLATE.format(name=name, title=title, heading=title[0].upper() + title[1:])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            try:
                file.write(text.encode())
                file.flush()
            except OSError:  # a full disk; an empty skill would be in the way of the next try
                path.unlink()
                raise
    except FileExistsError as error:
        raise ConfigurationError(f"{path} exists already: choose another name") from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from error
    return path
