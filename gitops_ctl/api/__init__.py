"""The kinds of gitops-ctl: models, their CustomResourceDefinitions, and the schemas that editors read."""
