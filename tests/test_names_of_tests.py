"""A module's tests are in the file of its name: ``test_<module>.py``, or
``test_<room>_<module>.py`` where two modules have one name.

The modules that have no such file are named with the reason, so that the list stays short.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import router

PACKAGE: Final = Path(router.__file__).parent
TESTS: Final = Path(__file__).parent

DEFINITIONS: Final = {
    # Types, names and interfaces, which do nothing by themselves.
    "cli/options": "options that commands share",
    "http/decisions": "two types; test_http_api",
    "http/problems": "one shape of answer; test_http_app",
    "learning/peers": "an interface; tests/cluster tests the one over Redis",
    "lint/rules": "the list of rules; test_lint_sarif reads it",
    "llm/protocol": "an interface; test_llm_openai and test_llm_ollama test its tokens",
    "memory/model": "types; test_memory",
    "memory/contexts/context": "types; test_assembler",
    "retrieval/embedding_cache": "an interface; test_retrieval_conformance",
    "retrieval/matches": "types; test_index",
    "service/shapes": "arguments and answers; test_schemas",
    "skills/sources": "an interface; test_source_conformance",
    "tools/sharing": "an interface; test_cluster_tools",
    "version": "one line, which test_package reads",
    "web/problems": "one answer; test_http_app",
}
PARTS: Final = {
    # Parts of one concept, tested through the whole of it.
    "adapters/rankers": "test_selection",
    "cli/mcp": "tests/mcp runs the command",
    "cli/memory_curation": "test_proposals",
    "cluster/cluster": "test_faults and test_chaos",
    "cluster/follower": "test_near, test_cluster_learning and test_notices",
    "cluster/members": "test_faults",
    "cluster/reads": "test_cluster_answers",
    "components": "test_runtime opens routers",
    "given": "test_router",
    "http/endpoints": "test_http_api",
    "http/siblings": "test_http_stream and test_workers",
    "http/playground/journal": "test_playground_learning",
    "http/playground/rendering": "test_playground",
    "http/playground/screens": "test_playground_access",
    "http/playground/session": "test_playground",
    "learning/stage_calibrations": "test_learner and test_catalogs",
    "lint/skill_file": "each rule's test checks the lines that it names",
    "llm/calls": "test_llm",
    "llm/sdk": "test_llm_openai, test_llm_ollama and test_provider_faults",
    "mcp/server": "test_mcp_tools",
    "memory/layers/project": "test_memory",
    "memory/parts": "test_memory opens memories",
    "memory/services/forgetful/http": "test_forgetful_client",
    "memory/services/forgetful/mcp": "test_forgetful_client",
    "memory/stores/item_vectors": "test_memory_store",
    "memory/stores/spaces": "test_scope_canaries",
    "memory/stores/replacements": "test_memory_store",
    "memory/stores/rows": "test_memory_store",
    "memory/stores/sqlite_database": "test_memory_store",
    "memory/texts/words": "test_bm25",
    "retrieval/embedding_chroma": "test_retrieval_conformance",
    "retrieval/embedding_file": "test_retrieval_conformance",
    "retrieval/postings": "test_lexical",
    "service/service": "test_mcp_tools and test_http_api",
    "stages/conformance": "test_answers",
    "stages/wording": "test_gate",
    "sync_parts": "test_sync",
}
WITHOUT: Final = DEFINITIONS | PARTS


def _without_a_file() -> set[str]:
    names = {path.stem for path in TESTS.rglob("test_*.py")}
    found = set()
    for path in PACKAGE.rglob("*.py"):
        module, rooms = path.stem, path.relative_to(PACKAGE).parts[:-1]
        own = {f"test_{module}", *(f"test_{room}_{module}" for room in rooms)}
        if not module.startswith("__") and not own & names:
            found.add("/".join((*rooms, module)))
    return found


def test_every_module_has_a_test_file_of_its_name_or_a_reason() -> None:
    assert _without_a_file() - WITHOUT.keys() == set()


def test_no_module_on_the_list_has_gone() -> None:
    assert {name for name in WITHOUT if not (PACKAGE / f"{name}.py").exists()} == set()


def test_the_list_is_short() -> None:
    assert len(WITHOUT) < 60
