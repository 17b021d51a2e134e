"""Manifests as Kubernetes reads them: strictly by its schema, and $(NAME) by its rules."""
import re

import kubernetes_validate
import yaml

# The oldest for which these manifests are meant, and newer ones.
VERSIONS = ("1.31", "1.34", "1.37")


class Strict(yaml.SafeLoader):
    """Refuses a key that is there twice, as kubectl does."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"twice: {twice}", node.start_mark)
        return super().construct_mapping(node, deep)


def load(path):
    return list(yaml.load_all(path.read_text(), Strict))


def schema_findings(documents):
    found = []
    for document in documents:
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.ValidationError as why:
                place = ".".join(map(str, why.path))
                found.append(f"schema {version}: {document['kind']} {place}: {why.message}")
    return found


def pod_spec_of(documents):
    (document,) = (it for it in documents if it["kind"] in ("Pod", "Job"))
    return document["spec"] if document["kind"] == "Pod" else document["spec"]["template"]["spec"]


def environment_of(container, fields):
    """The container's own variables; `fields` is what the downward API knows of its Pod."""
    variables = {}
    for entry in container["env"]:
        if "value" in entry:
            variables[entry["name"]] = expand(entry["value"], variables)
        else:
            variables[entry["name"]] = fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
    return variables


def words_of(container, variables):
    words = container["command"] + container.get("args", [])
    return [expand(word, variables) for word in words]


def expand(text, variables):
    """$(NAME) is a variable that has come before, $$ is $; everything else stays."""

    def replace(match):
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", replace, text)
