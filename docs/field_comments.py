"""Take the comment at the end of a field's line as its description on the API pages."""

import ast
from typing import Any

import griffe


class FieldComments(griffe.Extension):
    """Reads ``field: int = 1  # what it is`` as a documented attribute."""

    def on_attribute_instance(self, *, node: ast.AST | griffe.ObjectNode, attr: griffe.Attribute, **_: Any) -> None:
        """Describe an attribute that has no docstring; griffe calls it for each."""
        in_source = isinstance(node, ast.AnnAssign) and isinstance(attr.parent, griffe.Class)
        if attr.docstring or not in_source or node.end_lineno is None:
            return
        line = attr.lines_collection[attr.filepath][node.end_lineno - 1]  # type: ignore[index]
        _, mark, comment = line.partition("  # ")
        if mark:
            attr.docstring = griffe.Docstring(comment.strip(), lineno=node.end_lineno, parent=attr)
