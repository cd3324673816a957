"""The fields of a form, bounded as bodies of the API are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from router.http.limits import MAX_BODY_BYTES, read_body
from router.http.problems import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_FIELDS: Final = 50


async def read_form(request: Request) -> dict[str, str]:
    """The fields by name, with the last value of each; a file counts as a field with its text.

    Raises:
        Refused: the body is too large, too slow, or no form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await read_body(request)
    if kind == "multipart/form-data":
        return await _parts(request, body)
    if kind not in ("application/x-www-form-urlencoded", ""):
        raise Refused(415, "the body is no form", f"it is {kind[:80]}")
    try:
        fields = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"
        )
    except ValueError as error:  # no UTF-8, or too many fields
        raise Refused(400, "the form cannot be read", str(error)) from None
    return {name: value.replace("\r\n", "\n") for name, value in fields}


async def _parts(request: Request, body: bytes) -> dict[str, str]:
    async def stream() -> AsyncIterator[bytes]:
        yield body

    parser = MultiPartParser(
        request.headers,
        stream(),  # type: ignore[arg-type]  # it asks for a generator and reads an iterator
        max_files=2,
        max_fields=MAX_FIELDS,
        max_part_size=MAX_BODY_BYTES,
    )
    try:
        form = await parser.parse()
        return {
            name: (await value.read()).decode("utf-8-sig")
            if isinstance(value, UploadFile)
            else value.replace("\r\n", "\n")
            for name, value in form.multi_items()
        }
    except (MultiPartException, UnicodeDecodeError, KeyError) as error:
        raise Refused(400, "the form cannot be read", str(error)) from None
