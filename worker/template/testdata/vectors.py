"""Renders templates with transformers and writes vectors.json.

    pip install transformers==5.23.0 jinja2==3.1.6
    python vectors.py

Every case is a template of ours, variables, and what transformers makes of
them: the text, or the word "error" with "raised" if the template refused.
"""

import datetime
import json
import os

from transformers.utils import chat_template_utils

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
NOW = datetime.datetime(2026, 3, 7, 16, 5, 9, 123456)


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def render(template, variables):
    try:
        compiled = chat_template_utils._compile_jinja_template(template)
        return {"text": compiled.render(**variables)}
    except Exception as e:  # what it says differs from ours; that it fails must not
        import jinja2
        raised = type(e) is jinja2.exceptions.TemplateError
        return {"error": str(e), "raised": raised}


def main():
    chat_template_utils.datetime = FixedTime
    sets, out = [], []
    for template, variables in cases.all_cases():
        if variables not in sets:
            sets.append(variables)
        out.append({"template": template, "vars": sets.index(variables), **render(template, variables)})
    lines = lambda items: "[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in items) + "\n]"
    with open(os.path.join(HERE, "vectors.json"), "w") as f:
        f.write('{"vars": ' + lines(sets) + ', "cases": ' + lines(out) + "}\n")
    print(len(out), "cases,", sum("error" in c for c in out), "of them errors")


if __name__ == "__main__":
    main()
