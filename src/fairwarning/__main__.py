"""`python -m fairwarning` is the same program as `fairwarning`."""

from fairwarning.cli.main import main

if __name__ == "__main__":
    main(prog_name="fairwarning")
