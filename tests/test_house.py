"""The house: who may import whom, one port for each outside thing, modules of a size that can be read."""

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tenants.store import TENANT_APPS
from tests.conftest import PROJECT

LAYERS = {
    "config": {"config", "tenants", "models_app", "crawler", "chat"},
    "chat": {"chat", "models_app", "tenants"},
    "crawler": {"crawler", "models_app", "tenants"},
    "models_app": {"models_app", "tenants"},
    "tenants": {"tenants"},
}
LLM_PORTS = {"models_app/llm.py", "models_app/embedder.py", "tenants/addresses.py"}
PORTS = {
    "openai": LLM_PORTS,
    "httpx2": LLM_PORTS,
    "tiktoken": {"models_app/tokens.py"},
    "requests": {"crawler/web/fetch.py", "crawler/web/transport.py"},
    "urllib3": {"crawler/web/fetch.py", "crawler/web/transport.py"},
    "protego": {"crawler/web/robots.py"},
    "bs4": {"crawler/documents/reading.py"},
    "playwright": {"crawler/web/render.py"},
    "onnxruntime": {"models_app/local_embedder.py"},
    "onnx": {"models_app/e5_graph.py"},
    "yaml": {"models_app/yaml_rows.py"},
    "sqlite3": {"tenants/store.py"},
    "pypdfium2": {"crawler/documents/pdf.py"},
    "mammoth": {"crawler/documents/word.py"},
    "pptx": {"crawler/documents/slides.py"},
    "openpyxl": {"crawler/documents/sheets.py"},
}
NOT_USED = {"httpx", "aiohttp", "pandas", "jinja2", "sqlalchemy", "langchain"}
SQL_PORTS = {"models_app/index.py", "tenants/store.py"}
RAW_SQL_CALLS = {"cursor", "chunked_cursor", "executescript", "executemany", "raw", "extra", "RawSQL"}
MOST_LINES = 400
MOST_FUNCTION_LINES = 40
NAMELESS = {"utils", "helpers", "services", "managers", "common", "base", "misc", "core"}
NOT_NAMES = {"data", "info", "item", "obj", "process", "handle", "do", "manager", "helper"}
DJANGOS_NAMES = {"handle", "obj"}  # of commands, and of what the admin passes by that name
FORBIDDEN_IN_TEMPLATES = (" style=", "<style", " onclick=", "hx-on", "javascript:", "|safe", "autoescape off")


def _modules() -> list[Path]:
    found = (path for app in LAYERS for path in (PROJECT / app).rglob("*.py"))
    return sorted(path for path in found if "migrations" not in path.parts)


MODULES = _modules()


def name_of(path: Path) -> str:
    """Return the module's place in the project, such as `crawler/web/fetch.py`."""
    return path.relative_to(PROJECT).as_posix()


def app_of(path: Path) -> str:
    return path.relative_to(PROJECT).parts[0]


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(), filename=str(path))))


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Return every module that is imported anywhere in the file, also inside of functions and by name."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{'.' * node.level}{node.module or ''}"}
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and name_called(node) in ("import_module", "__import__", "import_string"):
            found |= {str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)}
    return frozenset(found)


def tops_of(path: Path) -> set[str]:
    """Return the packages a module imports from."""
    return {module.split(".")[0] for module in imports_of(path)}


def name_called(call: ast.Call) -> str:
    """Return the last part of what is called: `cursor` of `connection().cursor()`."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def calls_of(path: Path) -> list[ast.Call]:
    return [node for node in nodes_of(path) if isinstance(node, ast.Call)]


def is_port(path: Path, ports: set[str]) -> bool:
    """Return whether the module is one of the ports, or a part of one that has become a package."""
    return any(name_of(path) == port or name_of(path).startswith(f"{port.removesuffix('.py')}/") for port in ports)


def offenders(find: Callable[[Path], Any]) -> dict[str, Any]:
    """Return, by module, what `find` finds there against a rule."""
    found = {name_of(path): find(path) for path in MODULES}
    return {name: what for name, what in found.items() if what}


def test_the_house_is_not_empty():
    assert len(MODULES) > 30
    assert {app_of(path) for path in MODULES} == set(LAYERS)


def test_an_app_imports_only_what_lies_below_it():
    assert not offenders(lambda path: (tops_of(path) & {*LAYERS, "tests"}) - LAYERS[app_of(path)])


def test_nothing_is_imported_relatively():
    assert not offenders(lambda path: {module for module in imports_of(path) if module.startswith(".")})


def test_no_app_is_reached_around_the_imports():
    """`apps.get_model("chat", ...)` is an import in disguise."""
    assert not offenders(lambda path: {name_called(call) for call in calls_of(path)} & {"get_model", "get_models"})


def test_each_outside_thing_is_met_in_its_port_only():
    assert not offenders(lambda path: {top for top in tops_of(path) & set(PORTS) if not is_port(path, PORTS[top])})
    assert not offenders(lambda path: tops_of(path) & NOT_USED)


def test_every_port_is_where_it_is_said_to_be():
    """Else a port that was renamed would let its module be imported from anywhere under the old name."""
    for outside, ports in PORTS.items():
        assert [path for path in MODULES if is_port(path, ports)], outside


def test_raw_sql_stands_only_in_the_index_and_the_store():
    def raw_sql(path: Path) -> set[str]:
        if is_port(path, SQL_PORTS):
            return set()
        called = {name_called(call) for call in calls_of(path)} & RAW_SQL_CALLS
        on_connections = {ast.unparse(call.func) for call in calls_of(path) if name_called(call) == "execute"}
        return called | {each for each in on_connections if "conn" in each}

    assert not offenders(raw_sql)


def test_transactions_of_tenant_apps_are_opened_on_the_active_store():
    def transactions(path: Path) -> set[str]:
        names = {module for module in imports_of(path) if module.startswith("django.db.transaction")}
        return names if app_of(path) in TENANT_APPS else set()

    assert not offenders(transactions)


def test_there_are_no_signals():
    """Who reads the caller must see what happens."""
    assert not offenders(lambda path: imports_of(path) & {"django.dispatch", "django.db.models.signals"})


def test_a_module_can_be_read_in_one_sitting():
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in MODULES}
    assert not {name: lines for name, lines in lengths.items() if lines > MOST_LINES}


def test_a_function_fits_a_screen():
    def long_functions(path: Path) -> list[str]:
        functions = (node for node in nodes_of(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        return [each.name for each in functions if each.end_lineno - each.lineno + 1 > MOST_FUNCTION_LINES]

    assert not offenders(long_functions)


def test_a_module_says_what_it_answers_for():
    def is_silent(path: Path) -> bool:
        return path.name != "apps.py" and bool(path.read_text().strip()) and not ast.get_docstring(nodes_of(path)[0])

    assert not offenders(is_silent)


def test_a_module_is_named_after_its_subject():
    assert not offenders(lambda path: set(path.relative_to(PROJECT).with_suffix("").parts) & NAMELESS)


def test_functions_and_values_have_names_that_say_something():
    def nameless(path: Path) -> set[str]:
        definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        names = {node.name for node in nodes_of(path) if isinstance(node, definitions)}
        names |= {node.arg for node in nodes_of(path) if isinstance(node, ast.arg)}
        names |= {node.id for node in nodes_of(path) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        return {name for name in names if name.lower() in NOT_NAMES} - DJANGOS_NAMES

    assert not offenders(nameless)


def test_nothing_is_printed_but_by_commands():
    called = offenders(lambda path: {name_called(call) for call in calls_of(path)} & {"print", "breakpoint"})
    assert not {name for name in called if "/commands/" not in name}


def test_templates_hold_no_script_style_or_handler_of_their_own():
    """The content security policy would not run them, and text is never trusted."""
    found = {
        f"{path.relative_to(PROJECT)}: {forbidden}"
        for path in (PROJECT / "templates").rglob("*.html")
        for forbidden in FORBIDDEN_IN_TEMPLATES
        if forbidden in path.read_text()
    }
    assert not found
