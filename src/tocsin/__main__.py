"""`python -m tocsin`: the command line."""

from tocsin.cli import main

main()
