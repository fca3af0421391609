"""What schemas say: Kubernetes' own, ours, and those of CustomResourceDefinitions.

In scope: which schema, findings with places and fixes, keyed lists, refused schemas.  Out of scope: rules and policies.
"""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.documents.builtin import builtin_kinds
from gitops_ctl.documents.schema import SchemaCatalog
from tests.support.documents import codes, document

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: a, namespace: team-a}}
spec:
  selector: {{matchLabels: {{app: a}}}}
  template:
    metadata: {{labels: {{app: a}}}}
    spec:
      containers:
        - name: main
          image: registry.example.net/app:1
          {extra}
"""


def deployment(extra):
    return document(DEPLOYMENT.format(extra=extra))


def check(item, **options):
    return SchemaCatalog(**options).check(item)


def crd(schema, *, group="example.net", kind="Widget", scope="Namespaced", versions=("v1",)):
    lines = "".join(
        f"    - {{name: {version}, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}\n"
        for version in versions
    )
    return document(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        f"metadata: {{name: widgets.{group}}}\nspec:\n  group: {group}\n  scope: {scope}\n"
        f"  names: {{kind: {kind}, plural: widgets}}\n  versions:\n{lines}"
    )


def widget(spec, *, version="v1"):
    return document(
        f"apiVersion: example.net/{version}\nkind: Widget\nmetadata: {{name: w, namespace: a}}\nspec: {spec}\n"
    )


def test_Y04_a_boolean_where_a_string_is_due_names_the_line_and_says_quote_it():
    (problem,) = check(deployment("env: [{name: DEBUG, value: False}]"))
    assert problem.code is ErrorCode.NOT_A_STRING
    assert (problem.file, problem.line, problem.column) == ("site/a.yaml", 12, 31)
    assert problem.pointer == "/spec/template/spec/containers/0/env/0/value"
    assert problem.hint == 'quote it: "False"'


@pytest.mark.parametrize("value", ["no", "on", "0777", "1_000", "1e3", "12", "0x1F", "1.5"])
def test_Y05_configmap_data_that_is_no_string_is_refused_with_the_fix(value):
    (problem,) = check(document(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  key: {value}\n"))
    assert (problem.code, problem.line, problem.column) == (ErrorCode.NOT_A_STRING, 5, 3)
    assert problem.hint == f'quote it: "{value}"'


@pytest.mark.parametrize("value", ["12:30:45", "2024-01-01", '"no"', "'0777'"])
def test_Y05_configmap_data_that_kubectl_reads_as_a_string_is_one(value):
    assert check(document(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  key: {value}\n")) == []


def test_S16_a_configmap_entry_without_a_value_is_refused():
    (problem,) = check(document("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  key:\n  b: x\n"))
    assert (problem.code, problem.line) == (ErrorCode.NOT_A_STRING, 5)


def test_values_that_could_be_secret_are_never_shown():
    secret = check(document("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: 48151623}\n"))
    variable = check(deployment("env: [{name: DB_PASSWORD, value: 48151623}]"))
    for problem in (*secret, *variable):
        assert problem.code is ErrorCode.NOT_A_STRING
        assert "48151623" not in problem.render()


def test_S01_two_entries_of_env_with_one_name_are_refused():
    (problem,) = check(deployment('env: [{name: A, value: "1"}, {name: B, value: "1"}, {name: A, value: "2"}]'))
    assert (problem.code, problem.line) == (ErrorCode.MERGE_KEY_REPEATED, 12)
    assert problem.message == "entry 2 of env has name A, as entry 0 has"


def test_S01_one_port_twice_with_the_same_protocol_is_refused_also_by_default():
    (problem,) = check(deployment("ports: [{containerPort: 53}, {containerPort: 53, protocol: TCP}]"))
    assert (problem.code, problem.pointer) == (ErrorCode.MERGE_KEY_REPEATED, "/spec/template/spec/containers/0/ports/1")


def test_S01_one_port_for_tcp_and_udp_is_what_the_server_accepts():
    assert check(deployment("ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]")) == []


def test_S01_service_ports_and_finalizers_have_keys_too():
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: a, finalizers: [x/y, x/y]}\nspec: {ports: [{port: 1}, {port: 1}]}\n"
    assert codes(check(document(service))) == [ErrorCode.MERGE_KEY_REPEATED] * 2


@pytest.mark.parametrize(
    ("extra", "message", "hint"),
    [
        ("imagePullPolicy: always", "containers[0].imagePullPolicy is none of Always, IfNotPresent, Never", ""),
        ("comand: [x]", "comand is no member here", "did you mean command?"),
        ("ports: [{hostPort: 1}]", "containerPort is missing", "add containerPort"),
        ("ports: [{containerPort: http}]", "ports[0].containerPort is a string, a whole number is due", ""),
        ("resources: {limits: [cpu]}", "resources.limits is a list, a mapping is due", ""),
    ],
)
def test_what_kubernetes_would_refuse_is_told_before(extra, message, hint):
    (problem,) = check(deployment(extra))
    assert (problem.code, problem.message, problem.hint) == (ErrorCode.SCHEMA, message, hint)
    assert problem.line == 12


def test_quantities_and_int_or_string_take_both_forms():
    assert check(deployment("resources: {limits: {cpu: 1, memory: 1Gi}}")) == []
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 1, targetPort: %s}]}\n"
    assert check(document(service % "http")) == check(document(service % "8080")) == []


def test_a_lenient_catalog_leaves_to_a_newer_server_what_it_may_know():
    problems = check(deployment("somethingNew: true"), lenient=True)
    assert [(problem.code, problem.severity) for problem in problems] == [(ErrorCode.SCHEMA, "warning")]
    assert check(deployment("env: [{name: A, value: 1}]"), lenient=True)[0].is_error


@pytest.mark.parametrize(
    ("api_version", "kind", "severity"),
    [
        ("v1", "ConfigMapp", "error"),
        ("apps/v1beta1", "Deployment", "error"),
        ("gitops-ctl.dev/v1alpha1", "Synk", "error"),
        ("cert-manager.io/v1", "Certificate", "warning"),
    ],
)
def test_an_unknown_kind_is_an_error_where_the_group_is_known_as_a_whole(api_version, kind, severity):
    (problem,) = check(document(f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n"))
    assert (problem.code, problem.severity, problem.line) == (ErrorCode.KIND_UNKNOWN, severity, 2)


def test_a_namespace_on_a_cluster_scoped_object_is_an_error():
    (problem,) = check(document("apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}\n"))
    assert (problem.code, problem.pointer) == (ErrorCode.SCHEMA, "/metadata/namespace")


def test_our_own_kinds_are_checked_by_their_models():
    problems = check(
        document(
            "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Sync\nmetadata: {name: a, namespace: b}\nspec: {pathh: x}\n"
        )
    )
    assert {"sourceRef is missing", "serviceAccountName is missing"} <= {problem.message for problem in problems}


def test_a_custom_object_is_checked_by_the_definition_in_the_repository():
    definition = crd(
        "{type: object, properties: {spec: {type: object, required: [size, mode], properties: {size: {type: integer, minimum: 1},"
        " mode: {type: string, default: x}, any: {type: object, x-kubernetes-preserve-unknown-fields: true},"
        " when: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}}, status: {type: object}}}"
    )
    catalog = {"crds": (definition,)}
    assert check(widget("{size: 1, any: {deep: [1]}, when: 5}"), **catalog) == []
    assert [one.message for one in check(widget("{size: 0}"), **catalog)] == ["spec.size breaks minimum 1"]
    assert [one.message for one in check(widget("{siz: 1, size: 2}"), **catalog)] == ["siz is no member here"]
    assert [one.message for one in check(widget("{}"), **catalog)] == ["size is missing"]
    assert codes(check(widget("{size: 1}", version="v2"), **catalog)) == [ErrorCode.KIND_UNKNOWN]


def test_alternatives_name_the_closest_one():
    definition = crd(
        "{type: object, properties: {spec: {type: object, properties: {a: {type: string}, b: {type: string}},"
        " oneOf: [{required: [a]}, {required: [b]}]}}}"
    )
    assert check(widget("{a: x}"), crds=(definition,)) == []
    assert (
        check(widget("{}"), crds=(definition,))[0].message
        == "spec has none of the allowed forms; closest: a is missing"
    )
    assert check(widget("{a: x, b: z}"), crds=(definition,))[0].message == "spec has more than one of the allowed forms"


def test_Y11_a_schema_that_refers_to_another_place_is_refused_and_opens_no_socket(monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("socket.socket.connect", refuse)
    definition = crd('{type: object, properties: {spec: {$ref: "http://192.0.2.1/schema.json"}}}')
    problems = check(definition)
    assert ErrorCode.SCHEMA_REFUSED in codes(problems)
    refused = next(one for one in problems if one.code is ErrorCode.SCHEMA_REFUSED)
    assert refused.pointer == "/spec/versions/0/schema/openAPIV3Schema/properties/spec/$ref"
    check(widget("{}"), crds=(definition,))


def test_Y11_a_catastrophic_pattern_takes_linear_time():
    """An engine that backtracks would not come back from the 50,000 characters before the time limit of the run."""
    definition = crd(
        '{type: object, properties: {spec: {type: object, properties: {a: {type: string, pattern: "^(a+)+$"}}}}}'
    )
    problems = check(widget(f"{{a: {'a' * 50_000}b}}"), crds=(definition,))
    assert [one.message for one in problems] == ["spec.a does not match ^(a+)+$"]


@pytest.mark.parametrize("pattern", ["(?=a)b", "(a)\\\\1", "(?<!x)y", "(unclosed"])
def test_Y11_patterns_that_need_backtracking_are_refused_in_the_definition(pattern):
    definition = crd(
        f'{{type: object, properties: {{spec: {{type: object, properties: {{a: {{type: string, pattern: "{pattern}"}}}}}}}}}}'
    )
    assert codes(check(definition)) == [ErrorCode.SCHEMA_REFUSED]
    warned = check(widget("{a: x}"), crds=(definition,))
    assert [(one.code, one.severity) for one in warned] == [(ErrorCode.SCHEMA_REFUSED, "warning")]


def test_every_builtin_schema_can_be_used():
    kinds = builtin_kinds()
    for name in kinds.kinds:
        api_version, _, kind = name.rpartition("/")
        item = document(f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n")
        assert ErrorCode.SCHEMA_REFUSED not in codes(check(item)), name
        assert ErrorCode.KIND_UNKNOWN not in codes(check(item)), name


def test_the_digest_changes_with_the_definitions():
    plain = SchemaCatalog().digest
    assert SchemaCatalog(crds=(crd("{type: object}"),)).digest != plain
    assert SchemaCatalog(lenient=True).digest != plain
    assert SchemaCatalog().digest == plain
