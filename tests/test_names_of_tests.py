"""A module's tests are in the file of its name: ``test_<module>.py``, or
``test_<room>_<module>.py`` where two modules have one name.

This holds for the rooms below. The modules that have no file of their own are named with the
reason, so that the list stays short.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import router

PACKAGE: Final = Path(router.__file__).parent
TESTS: Final = Path(__file__).parent
ROOMS: Final = (
    *("", "cli", "cluster", "enrichment", "learning", "lint", "llm", "retrieval", "service"),
    *("skills", "stages", "tools", "web"),
)

WITHOUT: Final = {
    # Definitions that do nothing by themselves.
    "errors": "error types",
    "version": "one line, which test_package reads",
    "cli/options": "options that commands share",
    "cluster/keys": "names of keys; test_cluster_answers",
    "cluster/scripts": "what Redis runs; test_cluster_answers and test_link",
    "service/shapes": "arguments and answers; test_schemas",
    "tools/sharing": "an interface; test_cluster_tools",
    "web/problems": "one answer; test_http_api",
    "learning/peers": "an interface; tests/cluster tests the one over Redis",
    "lint/rules": "the list of rules; test_lint_sarif reads it",
    "llm/protocol": "an interface; test_llm_openai and test_llm_ollama test its tokens",
    "retrieval/embedding_cache": "an interface; test_retrieval_conformance",
    "skills/sources": "an interface; test_source_conformance",
    # Parts of one concept, tested through the whole of it.
    "components": "test_runtime opens routers",
    "cli/demo": "test_cli_evaluate",
    "cli/mcp": "tests/mcp runs the command",
    "cli/server": "test_cli_serve",
    "cli/memory_curation": "tests/memory/curation/test_proposals",
    "cluster/cluster": "test_faults and test_chaos",
    "cluster/follower": "test_near, test_cluster_learning and test_notices",
    "cluster/members": "test_faults",
    "cluster/reads": "test_cluster_answers",
    "service/gateway": "test_mcp_gateway",
    "service/service": "test_mcp_tools and test_http_api",
    "service/skills": "test_cli_lint and test_playground_skills",
    "web/workers": "test_cli_serve",
    "loop_thread": "test_sync",
    "numeric": "two formulas; test_likelihood, test_coverage and test_malformed_answers",
    "settings_files": "test_settings and test_trust",
    "sync_parts": "test_sync",
    "learning/trainer": "test_learner",
    "lint/source": "each rule's test checks the lines that it names",
    "llm/guarded": "test_llm",
    "retrieval/embedding_chroma": "test_retrieval_conformance",
    "retrieval/embedding_file": "test_retrieval_conformance",
    "retrieval/fusion": "test_index",
    "retrieval/inclusion": "test_discover",
    "retrieval/postings": "test_lexical",
    "skills/diagnostics": "test_manifest",
    "skills/frontmatter": "test_manifest",
    "stages/conformance": "test_answers",
    "stages/fuzzy_index": "test_fuzzy",
    "stages/wording": "test_gate",
}


def _without_a_file() -> set[str]:
    names = {path.stem for path in TESTS.rglob("test_*.py")}
    return {
        f"{room}/{module}".strip("/")
        for room in ROOMS
        for path in (PACKAGE / room).glob("*.py")
        if not (module := path.stem).startswith("__")
        and not {f"test_{module}", f"test_{room}_{module}"} & names
    }


def test_every_module_has_a_test_file_of_its_name_or_a_reason() -> None:
    assert _without_a_file() - WITHOUT.keys() == set()


def test_no_module_on_the_list_has_gone() -> None:
    assert {name for name in WITHOUT if not (PACKAGE / f"{name}.py").exists()} == set()
