"""Label selectors, evaluated here because the worker may read single Nodes only.  Pure."""

from gitops_ctl.core.jsonvalue import JsonObject, list_at, object_at, objects_at, text_at


def selects(selector: JsonObject, object: JsonObject) -> bool:
    """Whether the selector (`matchLabels`, `matchExpressions`) chooses the object; an empty one chooses everything.

    An operator that is not known chooses: whoever asks looks for what may be concerned.
    """
    labels = object_at(object, "metadata", "labels")
    exact = all(labels.get(name) == value for name, value in object_at(selector, "matchLabels").items())
    return exact and all(_holds(item, labels) for item in objects_at(selector, "matchExpressions"))


def _holds(expression: JsonObject, labels: JsonObject) -> bool:
    key, values = text_at(expression, "key"), list_at(expression, "values")
    match text_at(expression, "operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return True
