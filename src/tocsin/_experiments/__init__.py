"""The paper, redone: its problems, methods, tables and figures. Run them with `tocsin reproduce NAME`."""
