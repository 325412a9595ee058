#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""SQL lives in src/store and src/db alone, and no statement is put together from strings.

Usage: sql.py SOURCE_DIR
"""
import pathlib
import re
import sys

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SQL = re.compile(
    r"\s*(SELECT\s|INSERT\s+(OR\s|INTO\s)|REPLACE\s+INTO\s|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\s|"
    r"CREATE\s+(TABLE|UNIQUE|INDEX|VIEW|TRIGGER)\b|DROP\s+TABLE|ALTER\s+TABLE|PRAGMA\s|BEGIN\b|"
    r"COMMIT\b|SAVEPOINT\b|ROLLBACK\b|VACUUM\b|ATTACH\b)"
)
CLAUSE = re.compile(r"\s(FROM|WHERE|VALUES|ORDER BY|LIMIT)\s")
BUILDER = re.compile(r"\b(\w*printf|str_v?addf?|str_add_\w+|arena_printf)\s*\(")
# A PRAGMA takes no parameters; this one gets a number that is ours.
EXCEPTIONS = {"PRAGMA user_version = %d"}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def call_text(text, start):
    """From the opening parenthesis at start to the one that closes it."""
    depth, at = 0, start
    while at < len(text):
        if match := LITERAL.match(text, at):
            at = match.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            break
    return text[start:at]


def is_sql(literal):
    return bool(SQL.match(literal))


def findings(path, in_store):
    # Comments become blanks, so that line numbers stay.
    text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), path.read_text())
    if not in_store:
        for match in LITERAL.finditer(text):
            if is_sql(match[1]):
                yield text.count("\n", 0, match.start()) + 1, "SQL outside store and db"
        for match in re.finditer(r"sqlite3[_.]\w+|\"store/schema", text):
            yield text.count("\n", 0, match.start()) + 1, "SQLite outside store and db"
        return
    for match in BUILDER.finditer(text):
        literals = LITERAL.findall(call_text(text, match.end() - 1))
        if any(is_sql(l) or CLAUSE.search(l) for l in set(literals) - EXCEPTIONS):
            yield text.count("\n", 0, match.start()) + 1, f"SQL built by {match[1]}"


def self_test():
    """The patterns must find what they are for."""
    assert is_sql("SELECT x FROM t") and is_sql(" INSERT INTO t") and is_sql("UPDATE t SET a = 1")
    assert not is_sql("SELECTED") and not is_sql("could not UPDATE t SET")
    assert not is_sql("Update available") and is_sql("PRAGMA journal_mode")
    assert call_text('f("a)b", (c)) + d', 1) == '("a)b", (c))'


def main():
    self_test()
    source = pathlib.Path(sys.argv[1])
    count = wrong = 0
    for path in sorted((source / "src").rglob("*.[ch]")):
        parts = path.relative_to(source / "src").parts
        if "test" in parts:
            continue
        count += 1
        for line, what in findings(path, parts[0] in ("store", "db")):
            print(f"{path.relative_to(source)}:{line}: {what}")
            wrong += 1
    print(f"{count} files, {wrong} findings")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
