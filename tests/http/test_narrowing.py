"""A key with scopes narrows the scopes of a request."""

from __future__ import annotations

import pytest

from router.http.caller import Caller
from router.http.keys import Right
from router.http.problems import Refused


@pytest.mark.parametrize(
    ("scopes", "asked", "given"),
    [
        ((), None, None),
        ((), "any", "any"),
        (("shop",), None, "shop"),
        (("shop",), "shop", "shop"),
        (("shop",), "shop/ada", "shop/ada"),
        (("shop", "bank"), "bank", "bank"),
    ],
)
def test_a_scope_is_narrowed(scopes: tuple[str, ...], asked: str | None, given: str | None) -> None:
    assert Caller("x", frozenset(Right), scopes).scope_for(asked) == given


@pytest.mark.parametrize("asked", ["bank", "shopping", "shop2/ada", "", "sho", "SHOP", "/shop"])
def test_a_scope_is_never_widened(asked: str) -> None:
    caller = Caller("x", frozenset(Right), ("shop",))
    assert not caller.may_see(asked)
    assert not caller.may_see(None)
    with pytest.raises(Refused) as caught:
        caller.scope_for(asked)
    assert caught.value.status == 403
