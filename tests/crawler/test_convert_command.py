"""The command convert: one page as text or JSON, many as JSON lines, with no database."""

import base64
import json
import os
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command

from crawler.management.commands.convert import convert_lines
from tests.conftest import PROJECT

PAGE = "<title>Fees</title><nav>Menu</nav><main><h1>Fées</h1><p>Five <b>euros</b><img src=a.png alt=A></p></main>"


def line(number, html, **others):
    return json.dumps({"id": number, "html_base64": base64.b64encode(html).decode()} | others).encode()


def convert(*lines, images=True):
    return list(convert_lines(lines, images))


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "fees.html"
    path.write_bytes(PAGE.encode("windows-1252"))
    return str(path)


def test_a_file_is_printed_as_markdown(page, capsys):
    call_command("convert", page, "--url", "https://example.com/fees/")
    assert capsys.readouterr().out == "# Fées\n\nFive **euros**![A](https://example.com/fees/a.png)\n"


def test_json_is_one_document(page, capsys):
    call_command("convert", page, "--url", "https://example.com/fees/", "--json", "--no-images")
    assert json.loads(capsys.readouterr().out) == {
        "url": "https://example.com/fees/",
        "title": "Fees",
        "markdown": "# Fées\n\nFive **euros**",
        "text": "Fées Five euros",
        "selected_by": "main",
        "warnings": [],
    }


def test_what_cannot_be_converted_is_said(tmp_path):
    pdf = tmp_path / "a.pdf"
    pdf.write_bytes(b"%PDF-1.7\n")
    for arguments, said in (
        ([], "Give either one FILE, or --batch"),
        ([str(pdf), "--batch"], "Give either one FILE, or --batch"),
        ([str(tmp_path / "none.html")], "No such file"),
        ([str(pdf)], "not html: pdf"),
    ):
        with pytest.raises(CommandError, match=said):
            call_command("convert", *arguments)


def test_a_line_gives_its_markdown_and_its_words():
    assert convert(line("a", PAGE.encode(), url="https://example.com/fees/")) == [
        {
            "id": "a",
            "markdown": "# Fées\n\nFive **euros**![A](https://example.com/fees/a.png)",
            "text": "Fées Five euros",
        }
    ]


def test_a_bad_line_is_told_and_the_next_has_its_turn():
    answers = convert(
        b"nonsense\n",
        b"\n",
        b"[1]",
        b'{"id": 3}',
        b'{"id": 4, "html_base64": "*"}',
        b'{"id": 5, "html_base64": 5}',
        line(6, b"%PDF-1.7\n"),
        line(7, b"\xff\xfe\x00", url=["x"]),
        line(8, b"", url=None),
        line(9, b"<p>ok"),
        line([10], b"<p>ok"),
        line(float("nan"), b"<p>ok"),
        b"[" * 100_000,
        line("\ud800", b"<p>ok"),
    )
    assert [(answer["id"], "error" in answer) for answer in answers] == [
        (None, True),
        (None, True),
        (3, True),
        (4, True),
        (5, True),
        (6, True),
        (7, False),
        (8, False),
        (9, False),
        (None, True),
        (None, True),
        (None, True),
        ("\ud800", False),
    ]
    assert answers[5]["error"] == "not html: pdf"
    assert (answers[7]["markdown"], answers[8]["markdown"]) == ("", "ok")


def test_lines_are_answered_one_by_one_without_a_database(tmp_path):
    environment = os.environ | {"SITEWISE_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "manage.py", "convert", "--batch"]
    with subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        for number in (1, "\ud800", 2):
            running.stdin.write(line(number, b"<p>Ja\xc3\xa4</p>") + b"\n")
            running.stdin.flush()
            assert json.loads(running.stdout.readline()) == {"id": number, "markdown": "Jaä", "text": "Jaä"}
        running.stdin.close()
        assert running.wait() == 0
    assert not list(tmp_path.rglob("*.sqlite3"))
