"""`python -m tocsin`: the command line."""

from tocsin._cli import main

main()
