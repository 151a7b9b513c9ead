"""`python -m gaudi3_deploy`."""

from gaudi3_deploy.cli import main

if __name__ == "__main__":
    main()
