"""Admission policies, evaluated before the push: one source text serves `gitops-ctl check`, the Sync and the API server.

A ValidatingAdmissionPolicy is read as it is (gitops.md, section 5.1): `object`, `oldObject`, `request` and `variables` are
bound.  What only a server can answer, such as parameters and who sends a request, makes a policy server-only: it is listed,
not evaluated.  Only the boolean true passes; a failed evaluation is a failed rule unless the policy says `Ignore`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, objects_at, text_at
from gitops_ctl.core.redact import redact_text
from gitops_ctl.documents.expressions import EvaluationError, Expression, compile_condition, compile_expression
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.problem import Severity
from gitops_ctl.documents.shape import Flaw

_POLICY: Final = "ValidatingAdmissionPolicy"
_BINDING: Final = "ValidatingAdmissionPolicyBinding"
_PARAMS: Final = "params"
_VARIABLES: Final = ("object", "oldObject", "request", "variables", _PARAMS)
_SERVER_WORDS: Final = (_PARAMS, "authorizer", "namespaceObject", "request.userInfo")
_MESSAGE_LIMIT: Final = 500


@dataclass(frozen=True, slots=True)
class Subject:
    """What a policy is asked about.

    Attributes:
        tree: the object as it will be.
        before: the accepted version, None for a new object.
        resource: plural name of its kind.
    """

    tree: JsonObject
    before: JsonObject | None
    group: str
    version: str
    resource: str

    @property
    def operation(self) -> str:
        return "CREATE" if self.before is None else "UPDATE"

    def request(self) -> JsonObject:
        """The part of the admission request that is known without a server."""
        kind = text_at(self.tree, "kind")
        return {
            "operation": self.operation,
            "name": text_at(self.tree, "metadata", "name"),
            "namespace": text_at(self.tree, "metadata", "namespace"),
            "subResource": "",
            "dryRun": False,
            "kind": {"group": self.group, "version": self.version, "kind": kind},
            "resource": {"group": self.group, "version": self.version, "resource": self.resource},
        }


@dataclass(frozen=True, slots=True)
class _Validation:
    expression: Expression
    message: str
    message_expression: Expression | None


@dataclass(frozen=True, slots=True)
class Policy:
    """One compiled policy.  `severity` is a warning when its binding only warns or audits; `params` stand for its parameter object."""

    name: str
    rules: tuple[JsonObject, ...]
    conditions: tuple[Expression, ...]
    variables: tuple[tuple[str, Expression], ...]
    validations: tuple[_Validation, ...]
    ignores_failures: bool
    severity: Severity
    params: JsonObject | None = None

    def flaws(self, subject: Subject) -> Iterator[Flaw]:
        """What the policy says against the object."""
        if not any(_rule_matches(rule, subject) for rule in self.rules):
            return
        binding: dict[str, JsonValue] = {
            "object": subject.tree,
            "oldObject": subject.before,
            "request": subject.request(),
            _PARAMS: self.params,
        }
        try:
            if not all(condition.is_true(binding) for condition in self.conditions):
                return
        except EvaluationError as error:
            yield from self._failed("a match condition", error)
            return
        binding["variables"] = self._variables(binding)
        for number, validation in enumerate(self.validations, start=1):
            try:
                if not validation.expression.is_true(binding):
                    yield Flaw(ErrorCode.RULE, self._message(validation, binding), severity=self.severity)
            except EvaluationError as error:
                yield from self._failed(f"validation {number}", error)

    def _variables(self, binding: Mapping[str, JsonValue]) -> JsonObject:
        """In order; one that fails is left out, so that only what uses it fails."""
        values: dict[str, JsonValue] = {}
        for name, expression in self.variables:
            try:
                values[name] = expression.value({**binding, "variables": values})
            except EvaluationError:
                continue
        return values

    def _message(self, validation: _Validation, binding: Mapping[str, JsonValue]) -> str:
        text = validation.message
        if validation.message_expression is not None:
            try:
                value = validation.message_expression.value(binding)
                text = value if isinstance(value, str) and value.strip() else text
            except EvaluationError:
                pass
        cause = text or f"failed expression: {validation.expression.text.strip()}"
        return redact_text(f"policy {self.name}: {' '.join(cause.split())}")[:_MESSAGE_LIMIT]

    def _failed(self, what: str, error: EvaluationError) -> Iterator[Flaw]:
        if not self.ignores_failures:
            message = f"policy {self.name}: {what} cannot be evaluated: {error}"
            hint = "guard the member with has() in the policy, or correct the document"
            yield Flaw(ErrorCode.RULE, message, hint=hint, severity=self.severity)


@dataclass(frozen=True, slots=True)
class PolicyEngine:
    """All policies of a folder.

    Attributes:
        server_only: names of policies that only the API server evaluates.
    """

    policies: tuple[Policy, ...] = ()
    server_only: tuple[str, ...] = ()

    def flaws(self, subject: Subject) -> list[Flaw]:
        """What all policies say against one object, by policy."""
        return [flaw for policy in self.policies for flaw in policy.flaws(subject)]


def compile_policies(trees: Iterable[JsonObject], *, params: Mapping[str, JsonObject] | None = None) -> PolicyEngine:
    """Compile the admission policies among the objects; bindings among them decide between error and warning.

    Args:
        params: parameter objects that are known without a server, by the name of their policy.

    Raises:
        Refused: RULE; an expression is no CEL, or uses what is not known here.
    """
    listed = list(trees)
    actions = {
        text_at(tree, "spec", "policyName"): frozenset(list_at(tree, "spec", "validationActions"))
        for tree in listed
        if text_at(tree, "kind") == _BINDING
    }
    policies: list[Policy] = []
    server_only: list[str] = []
    for tree in listed:
        if text_at(tree, "kind") != _POLICY:
            continue
        name = text_at(tree, "metadata", "name")
        known = (params or {}).get(name)
        if is_server_only(tree, has_params=known is not None):
            server_only.append(name)
        else:
            denies = "Deny" in actions.get(name, {"Deny"})
            policies.append(_compile(tree, severity="error" if denies else "warning", params=known))
    return PolicyEngine(tuple(policies), tuple(server_only))


def is_server_only(tree: JsonObject, *, has_params: bool = False) -> bool:
    """True for a policy that asks for rights, for who sends the request, or for parameters that are not known here."""
    if object_at(tree, "spec", "paramKind") and not has_params:
        return True
    words = [word for word in _SERVER_WORDS if word != _PARAMS or not has_params]
    return any(word in text for text in _expressions(tree) for word in words)


def subject_of(document: Document, *, resource: str, before: JsonObject | None) -> Subject:
    """The question that a document puts to the policies."""
    return Subject(document.tree, before, document.gvk.group, document.gvk.version, resource)


def _expressions(tree: JsonObject) -> Iterator[str]:
    for block in ("matchConditions", "variables", "validations"):
        for entry in objects_at(tree, "spec", block):
            yield text_at(entry, "expression")
            yield text_at(entry, "messageExpression")


def _compile(tree: JsonObject, *, severity: Severity, params: JsonObject | None) -> Policy:
    name = text_at(tree, "metadata", "name")

    def condition(entry: JsonObject) -> Expression:
        return compile_condition(text_at(entry, "expression"), variables=_VARIABLES)

    try:
        return Policy(
            name=name,
            rules=tuple(objects_at(tree, "spec", "matchConstraints", "resourceRules")),
            conditions=tuple(condition(entry) for entry in objects_at(tree, "spec", "matchConditions")),
            variables=tuple(
                (text_at(entry, "name"), compile_expression(text_at(entry, "expression"), variables=_VARIABLES))
                for entry in objects_at(tree, "spec", "variables")
            ),
            validations=tuple(
                _Validation(condition(entry), text_at(entry, "message"), _optional(text_at(entry, "messageExpression")))
                for entry in objects_at(tree, "spec", "validations")
            ),
            ignores_failures=text_at(tree, "spec", "failurePolicy") == "Ignore",
            severity=severity,
            params=params,
        )
    except Refused as error:
        raise Refused(f"policy {name}: {error.message}", code=error.code, subject=name, hint=error.hint) from error


def _optional(text: str) -> Expression | None:
    return compile_expression(text, variables=_VARIABLES) if text.strip() else None


def _rule_matches(rule: JsonObject, subject: Subject) -> bool:
    """As the API server matches resource rules; sub-resources are never written from Git."""
    names = list_at(rule, "resourceNames")
    return (
        _holds(rule, "apiGroups", subject.group)
        and _holds(rule, "apiVersions", subject.version)
        and _holds(rule, "operations", subject.operation)
        and (_holds(rule, "resources", subject.resource) or "*/*" in list_at(rule, "resources"))
        and (not names or text_at(subject.tree, "metadata", "name") in names)
    )


def _holds(rule: JsonObject, member: str, value: str) -> bool:
    allowed = list_at(rule, member)
    return value in allowed or "*" in allowed
