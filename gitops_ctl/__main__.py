"""`python -m gitops_ctl` is `gitops-ctl`."""

from gitops_ctl.cli.main import main

if __name__ == "__main__":
    main()
