"""All checks together, over a set: order of findings, references, circles, the source of the set."""

import pytest
import yaml

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.documents.check import check_set
from gitops_ctl.documents.index import load_directory
from gitops_ctl.documents.schema import SchemaCatalog
from tests.support.api_rollouts import a_plan, a_rollout
from tests.support.documents import codes, config_map


@pytest.fixture
def check(tmp_path):
    def run(files, **options):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return check_set(load_directory(tmp_path), catalog=SchemaCatalog(), **options)

    return run


def waiting(name, *, on):
    return config_map(name).replace(
        "namespace: team-a}", f"namespace: team-a, annotations: {{gitops-ctl.dev/depends-on: '{on}'}}}}"
    )


def test_everything_that_is_wrong_is_found_in_one_run_in_reading_order(check):
    found = check(
        {
            "b.yaml": config_map("b", data="{x: 1}") + "---\nkind: [\n",
            "a.yaml": waiting("a", on="ConfigMap/team-a/none") + "status: {}\n",
            "c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: team-a, annotations: {gitops-ctl.dev/x: z}}\n",
        }
    )
    assert [(problem.file, problem.code) for problem in found] == [
        ("a.yaml", ErrorCode.REFERENCE),
        ("a.yaml", ErrorCode.STATUS_IGNORED),
        ("b.yaml", ErrorCode.NOT_A_STRING),
        ("b.yaml", ErrorCode.YAML_SYNTAX),
        ("c.yaml", ErrorCode.DUPLICATE_IDENTITY),
    ]


def test_a_dependency_on_a_broken_document_is_no_missing_reference(check):
    found = check({"a.yaml": waiting("a", on="ConfigMap/team-a/b"), "b.yaml": config_map("b", data="{x: 1, x: 2}")})
    assert codes(found) == [ErrorCode.DUPLICATE_KEY]


def test_a_dependency_on_an_ignored_document_is_no_missing_reference(check):
    assert (
        check(
            {
                "a.yaml": waiting("a", on="ConfigMap/team-a/b"),
                ".gitops-ctlignore": "b.yaml\n",
                "b.yaml": config_map("b"),
            }
        )
        == ()
    )


def test_a_circle_of_dependencies_names_its_members_at_each_of_them(check):
    found = check(
        {
            "a.yaml": waiting("a", on="ConfigMap/team-a/b"),
            "b.yaml": waiting("b", on="ConfigMap/team-a/c"),
            "c.yaml": waiting("c", on="ConfigMap/team-a/a"),
            "d.yaml": waiting("d", on="ConfigMap/team-a/a"),
        }
    )
    assert [(problem.file, problem.code) for problem in found] == [
        (file, ErrorCode.DEPENDENCY_CYCLE) for file in ("a.yaml", "b.yaml", "c.yaml")
    ]
    assert found[0].message == "these wait for each other: ConfigMap/team-a/a, ConfigMap/team-a/b, ConfigMap/team-a/c"
    assert found[0].line == 3


def test_two_circles_are_told_apart(check):
    found = check(
        {
            "a.yaml": waiting("a", on="ConfigMap/team-a/b"),
            "b.yaml": waiting("b", on="ConfigMap/team-a/a, ConfigMap/team-a/x"),
            "x.yaml": waiting("x", on="ConfigMap/team-a/z"),
            "z.yaml": waiting("z", on="ConfigMap/team-a/x"),
        }
    )
    assert {problem.message for problem in found} == {
        "these wait for each other: ConfigMap/team-a/a, ConfigMap/team-a/b",
        "these wait for each other: ConfigMap/team-a/x, ConfigMap/team-a/z",
    }


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team-a}\nspec: {serviceAccountName: %s, containers: [{name: a}]}\n"
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: team-a}\n"


def test_a_missing_service_account_is_a_warning_where_others_are_declared(check):
    found = check({"p.yaml": POD % "web", "s.yaml": ACCOUNT % "other"})
    assert [(problem.code, problem.severity, problem.pointer) for problem in found] == [
        (ErrorCode.REFERENCE, "warning", "/spec/serviceAccountName")
    ]


def test_a_service_account_of_somebody_else_is_nobodys_business(check):
    assert check({"p.yaml": POD % "web"}) == ()


def test_a_service_account_that_is_declared_is_found(check):
    assert check({"p.yaml": POD % "web", "s.yaml": ACCOUNT % "web"}) == ()


def test_role_bindings_and_ingresses_are_looked_through(check):
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: team-a}\n"
    binding = (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b, namespace: team-a}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: q}\n"
        "subjects: [{kind: ServiceAccount, name: nobody}]\n"
    )
    ingress = (
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, namespace: team-a}\n"
        "spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: gone, port: {number: 1}}}}]}}]}\n"
    )
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: team-a}\nspec: {ports: [{port: 1}]}\n"
    found = check({"r.yaml": role, "b.yaml": binding, "i.yaml": ingress, "v.yaml": service, "s.yaml": ACCOUNT % "web"})
    assert [(problem.file, problem.pointer) for problem in found] == [
        ("b.yaml", "/roleRef/name"),
        ("b.yaml", "/subjects/0/name"),
        ("i.yaml", "/spec/rules/0/http/paths/0/backend/service/name"),
    ]


SYNC = (
    "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Sync\nmetadata: {name: %s, namespace: net}\n"
    "spec: {sourceRef: {name: main}, serviceAccountName: deployer, dependsOn: [%s]}\n"
)


def test_a_circle_of_syncs_is_an_error(check):
    found = check({"a.yaml": SYNC % ("a", "b"), "b.yaml": SYNC % ("b", "a")})
    assert codes(found) == [ErrorCode.DEPENDENCY_CYCLE] * 2


def test_a_source_may_not_be_declared_by_what_comes_from_it(check):
    source = (
        "apiVersion: gitops-ctl.dev/v1alpha1\nkind: GitSource\nmetadata: {name: main, namespace: net}\n"
        "spec: {url: 'https://git.example.net/network.git', ref: {branch: main}}\n"
    )
    (problem,) = check({"a.yaml": source}, own_source=NamespacedName("net", "main"))
    assert (problem.code, problem.object) == (
        ErrorCode.OWN_SOURCE,
        ObjectId("gitops-ctl.dev", "GitSource", "net", "main"),
    )
    assert check({"a.yaml": source}, own_source=NamespacedName("net", "other")) == ()


def test_names_that_a_sync_fills_in_are_not_called_missing(check):
    people = ("requestedBy", "requestedAt")
    assert codes(check({"r.yaml": yaml.safe_dump(a_rollout(plan=a_plan(**dict.fromkeys(people))))})) == []
    assert codes(check({"r.yaml": yaml.safe_dump(a_rollout(plan=a_plan(image=None)))})) == [ErrorCode.SCHEMA]
